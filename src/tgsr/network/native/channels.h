// What an activation does to the channels of a point, and to their slopes on the way back.
//
// Channel 0 is the value, every other one linear in the pre-activations but for a second-order part:
//   x_0 = phi(z_0),  x_c = phi'(z_0) z_c + phi''(z_0) s_c,  s_c = sum over the terms of c of coefficient * z_a z_b,
// which covers first and second derivatives and operators sum c_ab d_ab + sum c_a d_a alike.
#pragma once
#include "vectors.h"

namespace tgsr {

constexpr long MOST_CHANNELS = 64;
constexpr long ONE = -1;  // in place of a column: the coefficient is 1

struct Start {  // at the first layer z_channel gets coefficient * (row `axis` of the weights)
  int64_t channel, axis, column;
};

struct Term {  // s_channel gets coefficient * z_a z_b
  int64_t channel, a, b, column;
};

struct Rules {
  long channels, columns;  // columns: coefficients per point
  const Start* starts;
  long start_count;
  const Term* terms;
  long term_count;
};

template <class T>
TGSR_INLINE T coefficient(const T* of_point, int64_t column) {
  return column == ONE ? T(1) : of_point[column];
}

// Pre-activations in `z` (points * channels rows; the bias not yet added) to activations in `x`. The row of z_0 is
// replaced by h = tanh z_0, from which all derivatives of tanh follow: d = 1 - h^2, d' = -2 h d, d'' = d (6 h^2 - 2).
template <class T>
void activate(const Rules& rules, long points, long columns, long step, const T* coefficients, const T* bias, T* z,
              T* x) {
  constexpr int L = LANES<T>;
  for (long p = 0; p < points; p++) {
    const T* own = coefficients + p * rules.columns;
    for (long v = 0; v < columns; v += L) {
      const Vector<T> h = tanh<T>(load(z + v) + load(bias + v));
      store(z + v, h);
      store(x + v, h);
      const Vector<T> d = T(1) - h * h, d2 = T(-2) * h * d;
      for (long c = 1; c < rules.channels; c++) store(x + c * step + v, d * load(z + c * step + v));
      for (long t = 0; t < rules.term_count; t++) {
        const Term& term = rules.terms[t];
        T* to = x + term.channel * step + v;
        const Vector<T> pair = load(z + term.a * step + v) * load(z + term.b * step + v);
        store(to, load(to) + d2 * coefficient(own, term.column) * pair);
      }
    }
    z += rules.channels * step;
    x += rules.channels * step;
  }
}

// `slope`: d loss / d x in, d loss / d z out; `z` as left by `activate`; `x` is made again. `bias` collects the slope of
// z_0 over points, `by_term` (points, terms, lanes) the slope of every term's coefficient, lane by lane.
template <class T>
void pull_back(const Rules& rules, long points, long columns, long step, const T* coefficients, const T* z, T* slope,
               T* x, T* bias, T* by_term) {
  constexpr int L = LANES<T>;
  for (long p = 0; p < points; p++) {
    const T* own = coefficients + p * rules.columns;
    for (long v = 0; v < columns; v += L) {
      const Vector<T> h = load(z + v), d = T(1) - h * h, d2 = T(-2) * h * d, d3 = d * (T(6) * h * h - T(2));
      Vector<T> moved[MOST_CHANNELS];  // d loss / d z
      Vector<T> along{}, bent{};       // what multiplies phi'' and phi''' in the slope of z_0
      store(x + v, h);
      for (long c = 1; c < rules.channels; c++) {
        const Vector<T> given = load(slope + c * step + v), at = load(z + c * step + v);
        along += given * at;
        moved[c] = d * given;
        store(x + c * step + v, d * at);
      }
      for (long t = 0; t < rules.term_count; t++) {
        const Term& term = rules.terms[t];
        const Vector<T> given = load(slope + term.channel * step + v);
        const Vector<T> a = load(z + term.a * step + v), b = load(z + term.b * step + v);
        const T factor = coefficient(own, term.column);
        const Vector<T> pair = a * b, pull = d2 * given;
        T* to = x + term.channel * step + v;
        store(to, load(to) + d2 * factor * pair);
        bent += factor * given * pair;
        moved[term.a] += factor * pull * b;
        moved[term.b] += factor * pull * a;
        if (term.column != ONE) {
          T* sum_to = by_term + t * L;
          store(sum_to, load(sum_to) + pull * pair);
        }
      }
      const Vector<T> at_value = d * load(slope + v) + d2 * along + d3 * bent;
      store(bias + v, load(bias + v) + at_value);
      store(slope + v, at_value);
      for (long c = 1; c < rules.channels; c++) store(slope + c * step + v, moved[c]);
    }
    z += rules.channels * step;
    slope += rules.channels * step;
    x += rules.channels * step;
    by_term += rules.term_count * L;
  }
}

}  // namespace tgsr
