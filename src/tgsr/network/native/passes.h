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
struct Work {
  const Layout<T>& layout;
  const Rules& rules;
  const T *weights, *x, *coefficients;  // flat; (points, inputs); (points, rules.columns)

  // ---- padded copies of the weights

  void pack(T* to) const {
    std::fill(to, to + layout.packed(), T(0));
    for (long l = 0; l < layout.hidden; l++) {
      const auto& layer = layout.layers[l];
      for (long k = 0; k <= layer.in; k++, to += layer.step)  // the bias follows the matrix, as in the flat vector
        std::copy_n(weights + layer.weight + k * layer.out, layer.out, to);
    }
    turn_last(to);
  }

  void turn_last(T* to) const {
    const auto& layer = layout.layers[layout.hidden];
    for (long m = 0; m < layer.out; m++, to += layout.last().step)
      for (long k = 0; k < layer.in; k++) to[k] = weights[layer.weight + k * layer.out + m];
  }

  void pack_turned(T* to) const {
    std::fill(to, to + layout.turned(), T(0));
    const auto& first = layout.layers[0];
    for (long k = 0; k < first.in; k++, to += first.step)
      std::copy_n(weights + first.weight + k * first.out, first.out, to);
    for (long l = 1; l < layout.hidden; l++) {
      const auto& layer = layout.layers[l];
      const long step = layout.layers[l - 1].step;
      constexpr long STRIP = 16;  // in strips, so that what is written stays in cache until the line is full
      for (long k0 = 0; k0 < layer.in; k0 += STRIP)
        for (long j = 0; j < layer.out; j++)
          for (long k = k0; k < std::min(k0 + STRIP, layer.in); k++)
            to[j * step + k] = weights[layer.weight + k * layer.out + j];
      to += layer.out * step;
    }
    turn_last(to);
  }

  // ---- forward

  // outputs: (channels, points, outputs). `packed` as made above, `room`: rows * widest numbers.
  void forward(long slot, const T* packed, T* room, T* outputs, T* kept) const {
    for (long b = layout.first_block(slot); b < layout.first_block(slot + 1); b++) {
      const long from = b * layout.block, n = std::min(layout.block, layout.points - from);
      const long rows = n * layout.channels;
      const T *own = coefficients + from * rules.columns, *weight = packed;
      T* z = kept + b * layout.kept;
      for (long l = 0; l < layout.hidden; l++) {
        const auto& layer = layout.layers[l];
        if (l == 0)
          begin(from, n, weight, z);
        else
          multiply(room, layout.layers[l - 1].step, weight, layer.step, layer.in, z, layer.step, rows, layer.padded);
        weight += layer.in * layer.step;
        activate(rules, n, layer.padded, layer.step, own, weight, z, room);
        weight += layer.step;
        z += layout.rows() * layer.step;
      }
      const auto& last = layout.last();
      const T* bias = weights + layout.layers[layout.hidden].bias;
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
    const T* turned_last = turned + layout.turned() - layout.outputs * layout.last().step;
    for (long b = layout.first_block(slot); b < layout.first_block(slot + 1); b++) {
      const long from = b * layout.block, n = std::min(layout.block, layout.points - from);
      const long rows = n * layout.channels;
      std::fill(by_term, by_term + n * layout.terms * LANES<T>, T(0));
      const T *z = kept + (b + 1) * layout.kept, *weight = turned_last;
      T* sum_at = sums + layout.packed() - layout.outputs * layout.last().step;
      for (long l = layout.hidden - 1; l >= 0; l--) {
        const auto& layer = layout.layers[l];
        z -= layout.rows() * layer.step;
        if (l == layout.hidden - 1) {
          seed(from, n, slopes, turned_last, slope);
        } else {
          const auto& next = layout.layers[l + 1];
          weight -= next.out * layer.step;
          const Ahead ahead{reinterpret_cast<const char*>(z), reinterpret_cast<const char*>(z + rows * layer.step)};
          multiply(above, next.step, weight, layer.step, next.out, slope, layer.step, rows, layer.padded, ahead);
        }
        T* bias = sum_at - layer.step - (l == layout.hidden - 1 ? 0 : layout.layers[l + 1].step * (layer.out + 1));
        pull_back(rules, n, layer.padded, layer.step, coefficients + from * rules.columns, z, slope, x_here, bias,
                  by_term);
        if (l == layout.hidden - 1) {
          end(from, n, slopes, x_here, sum_at, sums + layout.packed());
        } else {
          const auto& next = layout.layers[l + 1];
          sum_at -= next.step * (layer.out + 1);
          add_outer(x_here, layer.step, above, next.step, rows, sum_at, next.step, layer.out, next.padded);
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
    T* from = first;
    for (long i = 0; i < std::min(l, layout.hidden); i++) from += (layout.layers[i].in + 1) * layout.layers[i].step;
    const bool is_last = l == layout.hidden;
    const long length = is_last ? layout.sums() - (from - first) : (layer.in + 1) * layer.step;
    for (long s = 1; s < layout.slots; s++) add_scaled(from, T(1), from + s * layout.backward_slot(), length);
    if (!is_last) {
      for (long k = 0; k <= layer.in; k++)
        std::copy_n(from + k * layer.step, layer.out, gradient + layer.weight + k * layer.out);
      return;
    }
    for (long m = 0; m < layer.out; m++) {
      for (long k = 0; k < layer.in; k++) gradient[layer.weight + k * layer.out + m] = from[m * layout.last().step + k];
      gradient[layer.bias + m] = first[layout.packed() + m];
    }
  }
};

}  // namespace tgsr
