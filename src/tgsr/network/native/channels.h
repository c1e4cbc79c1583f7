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

TGSR_INLINE uint64_t bit(int64_t channel) { return uint64_t(1) << channel; }

// s_c of a point in the rows of x, for the channels that have one, which it names bit by bit. Term by term and ahead of
// phi, so that nothing waits for what was just stored.
template <class T>
TGSR_INLINE uint64_t second_order(const Rules& rules, long columns, long step, const T* own, const T* z, T* x) {
  uint64_t bent = 0;
  for (long t = 0; t < rules.term_count; t++) {
    const Term& term = rules.terms[t];
    const T factor = coefficient(own, term.column);
    const T *a = z + term.a * step, *b = z + term.b * step;
    T* to = x + term.channel * step;
    if (bent & bit(term.channel))
      for (long v = 0; v < columns; v += LANES<T>) store(to + v, load(to + v) + factor * (load(a + v) * load(b + v)));
    else
      for (long v = 0; v < columns; v += LANES<T>) store(to + v, factor * (load(a + v) * load(b + v)));
    bent |= bit(term.channel);
  }
  return bent;
}

// Pre-activations in `z` (points * channels rows; the bias not yet added) to activations in `x`. The row of z_0 is
// replaced by h = tanh z_0, from which all derivatives of tanh follow: d = 1 - h^2, d' = -2 h d, d'' = d (6 h^2 - 2).
template <class T>
void activate(const Rules& rules, long points, long columns, long step, const T* coefficients, const T* bias, T* z,
              T* x) {
  constexpr int L = LANES<T>;
  for (long p = 0; p < points; p++) {
    const uint64_t bent = second_order(rules, columns, step, coefficients + p * rules.columns, z, x);
    for (long v = 0; v < columns; v += L) {
      const Vector<T> h = tanh<T>(load(z + v) + load(bias + v));
      store(z + v, h);
      store(x + v, h);
      const Vector<T> d = T(1) - h * h, d2 = T(-2) * h * d;
      for (long c = 1; c < rules.channels; c++) {
        T* to = x + c * step + v;
        const Vector<T> straight = d * load(z + c * step + v);
        store(to, bent & bit(c) ? straight + d2 * load(to) : straight);
      }
    }
    z += rules.channels * step;
    x += rules.channels * step;
  }
}

// `slope`: d loss / d x in, d loss / d z out; `z` as left by `activate`; `x` is made again. `bias` collects the slope of
// z_0 over points, `by_term` (points, terms, lanes) the slope of every term's coefficient, lane by lane. `room`: as many
// rows as channels.
template <class T>
void pull_back(const Rules& rules, long points, long columns, long step, const T* coefficients, const T* z, T* slope,
               T* x, T* bias, T* by_term, T* room) {
  constexpr int L = LANES<T>;
  T* bend = room;  // what multiplies phi''' in the slope of z_0; row c of the room: what multiplies phi'' in that of z_c
  uint64_t paired = bit(0);
  for (long t = 0; t < rules.term_count; t++) paired |= bit(rules.terms[t].a) | bit(rules.terms[t].b);
  for (long p = 0; p < points; p++) {
    const T* own = coefficients + p * rules.columns;
    const uint64_t bent = second_order(rules, columns, step, own, z, x);
    for (long c = 0; c < rules.channels; c++)
      if (paired & bit(c)) std::memset(room + c * step, 0, columns * sizeof(T));
    for (long t = 0; t < rules.term_count; t++, by_term += L) {
      const Term& term = rules.terms[t];
      const T factor = coefficient(own, term.column);
      const T *given = slope + term.channel * step, *a = z + term.a * step, *b = z + term.b * step;
      T *to_a = room + term.a * step, *to_b = room + term.b * step;
      Vector<T> total{};
      for (long v = 0; v < columns; v += L) {
        const Vector<T> h = load(z + v), at_a = load(a + v), at_b = load(b + v), here = load(given + v);
        const Vector<T> pull = factor * here, pair = at_a * at_b;
        total += (h * h - T(1)) * h * (here * pair);  // half of phi''
        store(bend + v, load(bend + v) + pull * pair);
        store(to_a + v, load(to_a + v) + pull * at_b);
        store(to_b + v, load(to_b + v) + pull * at_a);
      }
      if (term.column != ONE) store(by_term, load(by_term) + T(2) * total);
    }
    for (long v = 0; v < columns; v += L) {
      const Vector<T> h = load(z + v), d = T(1) - h * h, d2 = T(-2) * h * d, d3 = d * (T(6) * h * h - T(2));
      Vector<T> along{};
      store(x + v, h);
      for (long c = 1; c < rules.channels; c++) {
        const long at = c * step + v;
        const Vector<T> given = load(slope + at), carried = load(z + at);
        along += given * carried;
        store(x + at, bent & bit(c) ? d * carried + d2 * load(x + at) : d * carried);
        store(slope + at, paired & bit(c) ? d * given + d2 * load(room + at) : d * given);
      }
      const Vector<T> at_value = d * load(slope + v) + d2 * along + d3 * load(bend + v);
      store(bias + v, load(bias + v) + at_value);
      store(slope + v, at_value);
    }
    z += rules.channels * step;
    slope += rules.channels * step;
    x += rules.channels * step;
  }
}

}  // namespace tgsr
