// The forward pass, which keeps what the backward pass needs, and the backward pass: one block of points after another.
#pragma once
#include "layout.h"
#include "products.h"

namespace tgsr {

template <class T>
TGSR_INLINE T dot(const T* a, const T* b, long columns) {
  Vector<T> total{};
  for (long v = 0; v < columns; v += LANES<T>) total += load(a + v) * load(b + v);
  return sum<T>(total);
}

template <class T>
TGSR_INLINE void add_scaled(T* to, T factor, const T* from, long columns) {
  for (long v = 0; v < columns; v += LANES<T>) store(to + v, load(to + v) + factor * load(from + v));
}

template <class T>
TGSR_INLINE Ahead ahead_of(const T* at, long count) {
  return {reinterpret_cast<const char*>(at), reinterpret_cast<const char*>(at + count)};
}

template <class T>
struct Work {
  using Layer = typename Layout<T>::Layer;
  const Layout<T>& layout;
  const Rules& rules;
  const T *weights, *x, *coefficients;  // flat; (points, inputs); (points, rules.columns)

  // ---- padded copies of the weights

  void pack(T* to) const {
    std::fill(to, to + layout.packed, T(0));
    for (long l = 0; l < layout.hidden; l++) {
      const auto& layer = layout.layers[l];
      copy_rows(layer, 0, layer.in + 1, to + layer.packed, layer.step);  // the bias follows the matrix
      if (l && layer.narrow) turn(layer, layer.full, layer.out, to + narrow_at(l), layout.layers[l - 1].step);
    }
    const auto& output = layout.layers[layout.hidden];
    turn(output, 0, output.out, to + output.packed, layout.last().step);
  }

  void pack_turned(T* to) const {
    std::fill(to, to + layout.turned, T(0));
    const auto &first = layout.layers[0], &output = layout.layers[layout.hidden];
    copy_rows(first, 0, first.in, to + first.turned, first.step);
    for (long l = 1; l < layout.hidden; l++) {
      const auto &layer = layout.layers[l], &below = layout.layers[l - 1];
      turn(layer, 0, layer.out, to + layer.turned, below.step);
      if (below.narrow) copy_rows(layer, below.full, below.out, to + layer.turned + layer.out * below.step, layer.step);
    }
    turn(output, 0, output.out, to + output.turned, layout.last().step);
  }

  void copy_rows(const Layer& layer, long from, long end, T* to, long step) const {
    for (long k = from; k < end; k++, to += step) std::copy_n(weights + layer.weight + k * layer.out, layer.out, to);
  }

  // Columns `from` to `end` of a matrix as rows.
  void turn(const Layer& layer, long from, long end, T* to, long step) const {
    constexpr long STRIP = 16;  // in strips, so that what is written stays in cache until the line is full
    for (long k0 = 0; k0 < layer.in; k0 += STRIP)
      for (long j = from; j < end; j++)
        for (long k = k0; k < std::min(k0 + STRIP, layer.in); k++)
          to[(j - from) * step + k] = weights[layer.weight + k * layer.out + j];
  }

  // Where the narrow columns of a layer after the first lie in `packed`, and their sums in a slot's.
  long narrow_at(long l) const { return layout.layers[l].packed + (layout.layers[l].in + 1) * layout.layers[l].step; }

  // Rows of a layer, of activations or slopes, through a matrix to the columns of another layer.
  void through(const T* a, const Layer& from, long depth, const T* matrix, const T* narrow, const Layer& to, T* out,
               long rows, Ahead ahead = {}) const {
    multiply(a, from.step, matrix, to.step, depth, out, to.step, rows, to.full, ahead);
    if (!to.narrow) return;
    for (long i = 0; i < rows; i++)
      for (long v = to.full; v < to.padded; v += LANES<T>) store(out + i * to.step + v, Vector<T>{});
    multiply_narrow(a, from.step, narrow, from.step, from.padded, out + to.full, to.step, rows, to.narrow);
  }

  // ---- forward

  // outputs: (channels, points, outputs). `packed` as made above, `room`: rows * widest numbers.
  void forward(long slot, const T* packed, T* room, T* outputs, T* kept) const {
    for (long b = layout.first_block(slot); b < layout.first_block(slot + 1); b++) {
      const long from = b * layout.block, n = std::min(layout.block, layout.points - from);
      const long rows = n * layout.channels;
      const T* own = coefficients + from * rules.columns;
      T* z = kept + b * layout.kept;
      for (long l = 0; l < layout.hidden; l++) {
        const auto& layer = layout.layers[l];
        const T* weight = packed + layer.packed;
        if (l == 0)
          begin(from, n, weight, z);
        else
          through(room, layout.layers[l - 1], layer.in, weight, packed + narrow_at(l), layer, z, rows);
        activate(rules, n, layer.padded, layer.step, own, weight + layer.in * layer.step, z, room);
        z += layout.rows() * layer.step;
      }
      const auto &last = layout.last(), &output = layout.layers[layout.hidden];
      const T* weight = packed + output.packed;
      const T* bias = weights + output.bias;
      for (long p = 0; p < n; p++)
        for (long c = 0; c < layout.channels; c++)
          for (long m = 0; m < layout.outputs; m++)
            outputs[(c * layout.points + from + p) * layout.outputs + m] =
                dot(room + (p * layout.channels + c) * last.step, weight + m * last.step, last.padded) +
                (c == 0 ? bias[m] : T(0));
    }
  }

  // The channels of the first layer's pre-activations, without the bias.
  void begin(long from, long n, const T* weight, T* z) const {
    const auto& layer = layout.layers[0];
    std::fill(z, z + n * layout.channels * layer.step, T(0));
    for (long p = 0; p < n; p++, z += layout.channels * layer.step) {
      for (long k = 0; k < layer.in; k++)
        add_scaled(z, x[(from + p) * layer.in + k], weight + k * layer.step, layer.padded);
      for (long s = 0; s < rules.start_count; s++) {
        const Start& start = rules.starts[s];
        add_scaled(z + start.channel * layer.step, coefficient(coefficients + (from + p) * rules.columns, start.column),
                   weight + start.axis * layer.step, layer.padded);
      }
    }
  }

  // ---- backward

  // slopes: d loss / d outputs (channels, points, outputs). `room` holds this slot's sums first; `by_x` and
  // `by_coefficient` take the slopes of x and the coefficients.
  void backward(long slot, const T* turned, const T* slopes, const T* kept, T* room, T* by_x, T* by_coefficient) const {
    T* sums = room;
    std::fill(sums, sums + layout.sums(), T(0));
    T* x_here = sums + layout.sums();
    T* slope = x_here + layout.rows() * layout.widest;
    T* above = slope + layout.rows() * layout.widest;
    T* by_term = above + layout.rows() * layout.widest;
    T* bends = by_term + layout.block * layout.terms * LANES<T>;
    const Layer& output = layout.layers[layout.hidden];
    for (long b = layout.first_block(slot); b < layout.first_block(slot + 1); b++) {
      const long from = b * layout.block, n = std::min(layout.block, layout.points - from);
      const long rows = n * layout.channels;
      std::fill(by_term, by_term + n * layout.terms * LANES<T>, T(0));
      const T* z = kept + (b + 1) * layout.kept;
      for (long l = layout.hidden - 1; l >= 0; l--) {
        const auto& layer = layout.layers[l];
        z -= layout.rows() * layer.step;
        if (l == layout.hidden - 1) {
          seed(from, n, slopes, turned + output.turned, slope);
        } else {
          const auto& next = layout.layers[l + 1];
          const T *matrix = turned + next.turned, *narrow = matrix + next.out * layer.step;
          through(above, next, next.out, matrix, narrow, layer, slope, rows, ahead_of(z, rows * layer.step));
        }
        pull_back(rules, n, layer.padded, layer.step, coefficients + from * rules.columns, z, slope, x_here,
                  sums + layer.packed + layer.in * layer.step, by_term, bends);
        if (l == layout.hidden - 1) {
          end(from, n, slopes, x_here, sums + output.packed, sums + layout.packed);
        } else {
          const auto& next = layout.layers[l + 1];
          // The next block begins where no product has asked for its rows.
          const long end = l == 0 && b + 1 < layout.first_block(slot + 1) ? layout.rows() * layout.last().step : 0;
          const T* begin = kept + (b + 2) * layout.kept - end;
          add_outer(x_here, layer.step, above, next.step, rows, sums + next.packed, next.step, layer.out, next.full,
                    ahead_of(begin, end));
          if (next.narrow)  // turned, so that vectors are full again
            add_outer(above + next.full, next.step, x_here, layer.step, rows, sums + narrow_at(l + 1), layer.step,
                      next.narrow, layer.padded);
        }
        std::swap(slope, above);
      }
      start_slopes(from, n, turned, above, sums, by_x, by_coefficient);
      for (long p = 0; p < n; p++)
        for (long t = 0; t < rules.term_count; t++)
          if (rules.terms[t].column != ONE)
            by_coefficient[(from + p) * rules.columns + rules.terms[t].column] +=
                sum<T>(load(by_term + (p * rules.term_count + t) * LANES<T>));
    }
  }

  // d loss / d x of the last hidden layer.
  void seed(long from, long n, const T* slopes, const T* weight, T* slope) const {
    const auto& last = layout.last();
    std::fill(slope, slope + n * layout.channels * last.step, T(0));
    for (long p = 0; p < n; p++)
      for (long c = 0; c < layout.channels; c++)
        for (long m = 0; m < layout.outputs; m++)
          add_scaled(slope + (p * layout.channels + c) * last.step,
                     slopes[(c * layout.points + from + p) * layout.outputs + m], weight + m * last.step, last.padded);
  }

  // d loss / d (weights and bias of the output layer).
  void end(long from, long n, const T* slopes, const T* x_last, T* by_weight, T* by_bias) const {
    const auto& last = layout.last();
    for (long p = 0; p < n; p++)
      for (long c = 0; c < layout.channels; c++)
        for (long m = 0; m < layout.outputs; m++) {
          const T slope = slopes[(c * layout.points + from + p) * layout.outputs + m];
          add_scaled(by_weight + m * last.step, slope, x_last + (p * layout.channels + c) * last.step, last.padded);
          if (c == 0) by_bias[m] += slope;
        }
  }

  // From d loss / d z of the first layer to its weights, to x and to the coefficients of first derivatives.
  void start_slopes(long from, long n, const T* weight, const T* slope, T* by_weight, T* by_x, T* by_coefficient) const {
    const auto& layer = layout.layers[0];
    for (long p = from; p < from + n; p++, slope += layout.channels * layer.step) {
      const T* own = coefficients + p * rules.columns;
      for (long k = 0; k < layer.in; k++) {
        add_scaled(by_weight + k * layer.step, x[p * layer.in + k], slope, layer.padded);
        by_x[p * layer.in + k] = dot(slope, weight + k * layer.step, layer.padded);
      }
      std::fill(by_coefficient + p * rules.columns, by_coefficient + (p + 1) * rules.columns, T(0));
      for (long s = 0; s < rules.start_count; s++) {
        const Start& start = rules.starts[s];
        const T* here = slope + start.channel * layer.step;
        add_scaled(by_weight + start.axis * layer.step, coefficient(own, start.column), here, layer.padded);
        if (start.column != ONE)
          by_coefficient[p * rules.columns + start.column] +=
              dot(here, weight + start.axis * layer.step, layer.padded);
      }
    }
  }

  // The slots' sums, added in their order, as the gradient of the flat vector; part l of hidden + 1. `first`: the room of
  // the first slot, whose sums take in those of the others.
  void gather(long l, T* first, T* gradient) const {
    const auto& layer = layout.layers[l];
    T* from = first + layer.packed;
    const bool is_output = l == layout.hidden;
    const long end = is_output ? layout.sums() : layout.layers[l + 1].packed;
    for (long s = 1; s < layout.slots; s++)
      add_scaled(from, T(1), from + s * layout.backward_slot(), end - layer.packed);
    T* to = gradient + layer.weight;
    if (is_output) {
      turn_back(from, layout.last().step, layer, 0, to);
      std::copy_n(first + layout.packed, layer.out, gradient + layer.bias);
      return;
    }
    for (long k = 0; k <= layer.in; k++) std::copy_n(from + k * layer.step, layer.out, to + k * layer.out);
    if (l && layer.narrow) turn_back(first + narrow_at(l), layout.layers[l - 1].step, layer, layer.full, to);
  }

  void turn_back(const T* rows, long step, const Layer& layer, long column, T* to) const {
    for (long k = 0; k < layer.in; k++)
      for (long j = column; j < layer.out; j++) to[k * layer.out + j] = rows[(j - column) * step + k];
  }
};

}  // namespace tgsr
