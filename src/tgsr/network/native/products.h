// Matrix products of a block of points that stays in cache: rows times weights, and sums of outer products.
#pragma once
#include <algorithm>

#include "vectors.h"

namespace tgsr {

// A tile of vectors of the result stays in registers: 24 of 32 with AVX-512, 12 of 16 below.
constexpr int TILE = VECTOR_BYTES == 64 ? 24 : 12;
constexpr int WIDE = VECTOR_BYTES == 64 ? 4 : 2;
constexpr int tall(int wide) { return TILE / wide < 8 ? TILE / wide : 8; }

// Memory that the step after a product will read: asked for a little at a time while the product keeps the units busy.
struct Ahead {
  const char *at = nullptr, *end = nullptr;
  long share = 0;  // bytes per tile

  TGSR_INLINE void fetch() {
    const char* stop = std::min(at + share, end);
    for (; at < stop; at += LINE_BYTES) __builtin_prefetch(at, 0, 2);
  }
};

// out[i][v] (+)= sum_k a(i, k) b[k][v] with a(i, k) = a[i * step + k], or a[k * step + i] if TURNED.
template <class T, int R, int N, bool TURNED, bool ADD>
TGSR_INLINE void tile(const T* a, long step, const T* b, long b_step, long depth, T* out, long out_step) {
  constexpr int L = LANES<T>;
  Vector<T> total[R][N];
#pragma GCC unroll 8
  for (int i = 0; i < R; i++)
#pragma GCC unroll 8
    for (int v = 0; v < N; v++) total[i][v] = Vector<T>{};
#pragma GCC unroll 2
  for (long k = 0; k < depth; k++) {
    Vector<T> row[N];
#pragma GCC unroll 8
    for (int v = 0; v < N; v++) row[v] = load(b + k * b_step + v * L);
#pragma GCC unroll 8
    for (int i = 0; i < R; i++) {
      const Vector<T> factor = all<T>(TURNED ? a[k * step + i] : a[i * step + k]);
#pragma GCC unroll 8
      for (int v = 0; v < N; v++) total[i][v] += factor * row[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; i++)
#pragma GCC unroll 8
    for (int v = 0; v < N; v++) {
      // Added at the end, where the next tile need not wait for what was there before.
      T* to = out + i * out_step + v * L;
      store(to, ADD ? load(to) + total[i][v] : total[i][v]);
    }
}

// out[i][j] = sum_k a[i][k] b[j][k] for four j
template <class T, int R>
TGSR_INLINE void dots(const T* a, long step, const T* b, long b_step, long depth, T* out, long out_step) {
  Vector<T> total[R][4] = {};
  for (long k = 0; k < depth; k += LANES<T>) {
    Vector<T> row[4];
#pragma GCC unroll 8
    for (int j = 0; j < 4; j++) row[j] = load(b + j * b_step + k);
#pragma GCC unroll 8
    for (int i = 0; i < R; i++) {
      const Vector<T> here = load(a + i * step + k);
#pragma GCC unroll 8
      for (int j = 0; j < 4; j++) total[i][j] += here * row[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; i++) sums_of_four<T>(total[i], out + i * out_step);
}

template <class T, int N, bool TURNED, bool ADD>
void panel(const T* a, long step, const T* b, long b_step, long depth, T* out, long out_step, long rows,
           Ahead& ahead) {
  constexpr int TALL = tall(N);
  long i = 0;
  const long next = TURNED ? 1 : step;
  for (; i + TALL <= rows; i += TALL) {
    ahead.fetch();
    tile<T, TALL, N, TURNED, ADD>(a + i * next, step, b, b_step, depth, out + i * out_step, out_step);
  }
  if (TALL > 4 && i + 4 <= rows) {
    tile<T, 4, N, TURNED, ADD>(a + i * next, step, b, b_step, depth, out + i * out_step, out_step);
    i += 4;
  }
  a += i * next;
  out += i * out_step;
  switch (rows - i) {
    case 3: return tile<T, 3, N, TURNED, ADD>(a, step, b, b_step, depth, out, out_step);
    case 2: return tile<T, 2, N, TURNED, ADD>(a, step, b, b_step, depth, out, out_step);
    case 1: return tile<T, 1, N, TURNED, ADD>(a, step, b, b_step, depth, out, out_step);
  }
}

template <class T, bool TURNED, bool ADD>
void product(const T* a, long step, const T* b, long b_step, long depth, T* out, long out_step, long rows,
             long columns, Ahead ahead) {
  const long vectors = columns / LANES<T>, panels = (vectors + WIDE - 1) / WIDE;
  ahead.share = (ahead.end - ahead.at) / std::max(1L, panels * (rows / 8)) + LINE_BYTES;
  for (long p = 0; p < panels; p++) {  // panels of nearly equal width: a narrow last one would waste registers
    const long from = vectors * p / panels, wide = vectors * (p + 1) / panels - from;
    const T* rest = b + from * LANES<T>;
    T* to = out + from * LANES<T>;
    switch (wide) {
#if defined(__AVX512F__)
      case 4: panel<T, 4, TURNED, ADD>(a, step, rest, b_step, depth, to, out_step, rows, ahead); break;
      case 3: panel<T, 3, TURNED, ADD>(a, step, rest, b_step, depth, to, out_step, rows, ahead); break;
#endif
      case 2: panel<T, 2, TURNED, ADD>(a, step, rest, b_step, depth, to, out_step, rows, ahead); break;
      case 1: panel<T, 1, TURNED, ADD>(a, step, rest, b_step, depth, to, out_step, rows, ahead); break;
    }
  }
}

// out (rows, columns) = a (rows, depth) b (depth, columns)
template <class T>
void multiply(const T* a, long a_step, const T* b, long b_step, long depth, T* out, long out_step, long rows,
              long columns, Ahead ahead = {}) {
  product<T, false, false>(a, a_step, b, b_step, depth, out, out_step, rows, columns, ahead);
}

// out (rows, columns) = a (rows, depth) b^T for b (columns, depth), columns a multiple of four and depth one of vectors:
// for columns too few to fill a vector, the lanes run along the depth instead.
template <class T>
void multiply_narrow(const T* a, long a_step, const T* b, long b_step, long depth, T* out, long out_step, long rows,
                     long columns) {
  constexpr int TALL = TILE / 4;
  for (long m = 0; m < columns; m += 4, b += 4 * b_step, out += 4) {
    long i = 0;
    for (; i + TALL <= rows; i += TALL)
      dots<T, TALL>(a + i * a_step, a_step, b, b_step, depth, out + i * out_step, out_step);
    for (; i < rows; i++) dots<T, 1>(a + i * a_step, a_step, b, b_step, depth, out + i * out_step, out_step);
  }
}

// out (width, columns) += a^T b for a (rows, width) and b (rows, columns)
template <class T>
void add_outer(const T* a, long a_step, const T* b, long b_step, long rows, T* out, long out_step, long width,
               long columns, Ahead ahead = {}) {
  product<T, true, true>(a, a_step, b, b_step, rows, out, out_step, width, columns, ahead);
}

}  // namespace tgsr
