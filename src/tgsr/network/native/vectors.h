// Vectors as wide as the instruction set allows, and tanh on them.
#pragma once
#include <cstdint>
#include <cstring>

namespace tgsr {

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif
constexpr int LINE_BYTES = 64;  // rows start on a cache line, whatever the vectors

#define TGSR_INLINE __attribute__((always_inline)) inline

template <class T>
struct Lane;

template <>
struct Lane<float> {
  typedef float Vector __attribute__((vector_size(VECTOR_BYTES)));
  typedef int32_t Bits __attribute__((vector_size(VECTOR_BYTES)));
  static constexpr float MAGIC = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number, kept in the low bits
  static constexpr int MANTISSA = 23;
  static constexpr float LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440e-4f;
  static constexpr float FAR = 10.0f;  // tanh is 1 to rounding beyond
  static constexpr int TERMS = 7;
};

template <>
struct Lane<double> {
  typedef double Vector __attribute__((vector_size(VECTOR_BYTES)));
  typedef int64_t Bits __attribute__((vector_size(VECTOR_BYTES)));
  static constexpr double MAGIC = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr int MANTISSA = 52;
  static constexpr double LN2_HIGH = 0.69314718036912381649, LN2_LOW = 1.90821492927058770002e-10;
  static constexpr double FAR = 20.0;
  static constexpr int TERMS = 13;
};

template <class T>
using Vector = typename Lane<T>::Vector;

template <class T>
constexpr int LANES = VECTOR_BYTES / sizeof(T);

template <class T>
TGSR_INLINE Vector<T> load(const T* at) {
  Vector<T> v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

template <class T>
TGSR_INLINE void store(T* at, Vector<T> v) {
  std::memcpy(at, &v, sizeof v);
}

template <class T>
TGSR_INLINE Vector<T> all(T a) {
  return a - Vector<T>{};  // a plain broadcast; a + 0 would be an addition, since it turns -0 into 0
}

// The sum of the lanes, halves first: a fixed order.
template <class T>
TGSR_INLINE T sum(Vector<T> v) {
  T part[LANES<T>];
  std::memcpy(part, &v, sizeof v);
  for (int half = LANES<T> / 2; half; half /= 2)
    for (int i = 0; i < half; i++) part[i] += part[i + half];
  return part[0];
}

// Four vectors to the sums of each: out[j] = sum of the lanes of v[j]. Lanes are paired, four by four, and then folded.
template <class T>
TGSR_INLINE void sums_of_four(const Vector<T>* v, T* out) {
  typedef typename Lane<T>::Bits Bits;
  constexpr int L = LANES<T>;
  Bits even, odd, low, high;
  for (int i = 0; i < L; i++) {
    const int four = i & ~3, j = i & 3;
    even[i] = four + j / 2 + (j & 1) * L;
    odd[i] = even[i] + 2;
    low[i] = four + (j & 1) + (j / 2) * L;
    high[i] = low[i] + 2;
  }
  const Vector<T> first = __builtin_shuffle(v[0], v[1], even) + __builtin_shuffle(v[0], v[1], odd);
  const Vector<T> second = __builtin_shuffle(v[2], v[3], even) + __builtin_shuffle(v[2], v[3], odd);
  Vector<T> total = __builtin_shuffle(first, second, low) + __builtin_shuffle(first, second, high);
  for (int half = L / 2; half >= 4; half /= 2) {
    Bits other;
    for (int i = 0; i < L; i++) other[i] = i ^ half;
    total += __builtin_shuffle(total, other);
  }
  std::memcpy(out, &total, 4 * sizeof(T));
}

// tanh x = e / (e + 2) with e = exp(2x) - 1. With 2x = n ln 2 + r and |r| <= ln(2)/2,
// e = 2^n (exp(r) - 1) + (2^n - 1), which keeps the relative accuracy near zero; exp(r) - 1 by its series.
template <class T>
TGSR_INLINE Vector<T> tanh(Vector<T> x) {
  typedef typename Lane<T>::Bits Bits;
  const Vector<T> far = all<T>(Lane<T>::FAR);
  x = x > far ? far : x;  // NaN compares false and stays
  x = x < -far ? -far : x;
  x = x + x;
  const Vector<T> shifted = x * T(1.44269504088896340736) + Lane<T>::MAGIC;
  const Vector<T> n = shifted - Lane<T>::MAGIC;
  const Vector<T> r = (x - n * Lane<T>::LN2_HIGH) - n * Lane<T>::LN2_LOW;
  constexpr double inverse[] = {1.0,           1.0 / 2,         1.0 / 6,          1.0 / 24,         1.0 / 120,
                                1.0 / 720,     1.0 / 5040,      1.0 / 40320,      1.0 / 362880,     1.0 / 3628800,
                                1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  Vector<T> series = all<T>(T(inverse[Lane<T>::TERMS - 1]));
#pragma GCC unroll 16
  for (int i = Lane<T>::TERMS - 2; i >= 0; i--) series = series * r + T(inverse[i]);
  series = series * r;
  const Vector<T> one = all<T>(T(1));
  Bits bits, whole;
  std::memcpy(&bits, &one, sizeof bits);
  std::memcpy(&whole, &shifted, sizeof whole);
  bits += whole << Lane<T>::MANTISSA;
  Vector<T> power;
  std::memcpy(&power, &bits, sizeof power);
  const Vector<T> e = power * series + (power - T(1));
  return e / (e + T(2));
}

}  // namespace tgsr
