// Where everything lies: the flat vector of weights, padded copies of it, blocks of points, slots of work.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "channels.h"

namespace tgsr {

// Points are shared out to a number of slots that depends on nothing but how many there are; each slot has sums of its
// own, added in the order of the slots. So the bits do not depend on how many threads worked, or which.
// Few of them, since every one has to clear, and add up, sums as long as all weights.
TGSR_INLINE long slots_for(long rows, long blocks) {
  return std::max(1L, std::min(rows < 192 ? 1L : rows < 4096 ? 2L : 4L, blocks));
}

constexpr long BLOCK_ROWS = 72;   // rows (points * channels) of a block: they stay in cache through all layers

template <class T>
struct Layout {
  static constexpr long LINE = LINE_BYTES / sizeof(T);

  struct Layer {
    long in, out;         // of the linear map
    long weight, bias;    // in the flat vector
    long padded, step;    // vectors cover `padded` numbers of a row of `out`; rows are `step` apart
    long full, narrow;    // columns of a product by whole vectors, and those beyond, in fours, which are dots instead
    long packed, turned;  // in the copies of the weights
  };

  std::vector<Layer> layers;  // the last one is the output layer, which is not padded
  long points, channels, terms, block, blocks, slots, widest = 0, kept = 0;
  long hidden, inputs, outputs, weights;
  // Numbers in the copies of the weights. `packed`, as the forward pass reads them: of every hidden layer the matrix, the
  // bias and its narrow columns turned; then the output's matrix turned. `turned`, as the backward pass reads them: the
  // first layer's matrix, the others' turned, each with what is narrow then as it is; the output's turned.
  long packed = 0, turned = 0;

  Layout(const int64_t* widths, long count, long points, long channels, long terms)
      : points(points), channels(channels), terms(terms) {
    long at = 0;
    for (long i = 0; i + 1 < count; i++) {
      const long in = widths[i], out = widths[i + 1], padded = (out + LINE - 1) / LINE * LINE;
      // Rows whose distance is a large power of two would share few places in the cache.
      const long step = padded + (padded * long(sizeof(T)) % 256 == 0 ? LINE : 0);
      const long fours = (out % LANES<T> + 3) / 4 * 4;
      const bool split = 0 < fours && 2 * fours <= LANES<T> && out > 3 * LANES<T>;  // less work than one more vector
      const long full = split ? out / LANES<T> * LANES<T> : padded;
      layers.push_back({in, out, at, at + in * out, padded, step, full, split ? fours : 0, packed, turned});
      at += in * out + out;
      if (i + 2 == count) break;
      widest = std::max(widest, step);
      kept += step;
      packed += (in + 1) * step;
      if (i == 0) {
        turned += in * step;
      } else {
        const Layer& below = layers[i - 1];
        packed += layers[i].narrow * below.step;
        turned += out * below.step + below.narrow * step;
      }
    }
    hidden = count - 2;
    inputs = widths[0];
    outputs = widths[count - 1];
    weights = at;
    packed += outputs * last().step;
    turned += outputs * last().step;
    const long most = std::max(1L, BLOCK_ROWS / channels), least_blocks = (points + most - 1) / most;
    slots = slots_for(points * channels, least_blocks);
    block = most;
    if (slots > 1) {  // blocks of nearly equal size, as many in every slot; rows in eights, which are whole tiles
      const long even = (least_blocks + slots - 1) / slots * slots, eights = 8 / std::gcd(channels, 8L);
      block = std::min(most, ((points + even - 1) / even + eights - 1) / eights * eights);
    }
    blocks = (points + block - 1) / block;
    kept *= block * channels;  // numbers per block
  }

  long rows() const { return block * channels; }
  long first_block(long slot) const { return blocks * slot / slots; }
  const Layer& last() const { return layers[hidden - 1]; }

  // A slot's sums have the layout of `packed` and the output's bias behind it.
  long sums() const { return packed + (outputs + LINE - 1) / LINE * LINE; }

  long forward_scratch() const { return packed + slots * rows() * widest; }
  long backward_slot() const { return sums() + (3 * rows() + channels) * widest + block * terms * LANES<T>; }
  long backward_scratch() const { return turned + slots * backward_slot(); }
};

}  // namespace tgsr
