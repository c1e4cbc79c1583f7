// Where everything lies: the flat vector of weights, padded copies of it, blocks of points, slots of work.
#pragma once
#include <algorithm>
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
  };

  std::vector<Layer> layers;  // the last one is the output layer, which is not padded
  long points, channels, terms, block, blocks, slots, widest = 0, kept = 0;
  long hidden, inputs, outputs, weights;

  Layout(const int64_t* widths, long count, long points, long channels, long terms)
      : points(points), channels(channels), terms(terms) {
    long at = 0;
    for (long i = 0; i + 1 < count; i++) {
      const long in = widths[i], out = widths[i + 1], padded = (out + LINE - 1) / LINE * LINE;
      // Rows whose distance is a large power of two would share few places in the cache.
      const long step = padded + (padded * long(sizeof(T)) % 256 == 0 ? LINE : 0);
      layers.push_back({in, out, at, at + in * out, padded, step});
      at += in * out + out;
      if (i + 2 < count) {
        widest = std::max(widest, step);
        kept += step;
      }
    }
    hidden = count - 2;
    inputs = widths[0];
    outputs = widths[count - 1];
    weights = at;
    block = std::max(1L, BLOCK_ROWS / channels);
    while (block > 1 && block * channels % 6) block--;  // whole tiles
    if (block == 1) block = std::max(1L, BLOCK_ROWS / channels);
    blocks = (points + block - 1) / block;
    slots = slots_for(points * channels, blocks);
    kept *= block * channels;  // numbers per block
  }

  long rows() const { return block * channels; }
  long first_block(long slot) const { return blocks * slot / slots; }
  const Layer& last() const { return layers[hidden - 1]; }

  // Padded weights, as the forward pass reads them: every hidden layer's matrix and bias, then the output's, turned.
  long packed() const {
    long n = outputs * last().step;
    for (long l = 0; l < hidden; l++) n += (layers[l].in + 1) * layers[l].step;
    return n;
  }
  // The same turned, as the backward pass reads them; the first layer's as it is.
  long turned() const {
    long n = outputs * last().step + inputs * layers[0].step;
    for (long l = 1; l < hidden; l++) n += layers[l].out * layers[l - 1].step;
    return n;
  }
  // A slot's sums have the layout of `packed` and the output's bias behind it.
  long sums() const { return packed() + (outputs + LINE - 1) / LINE * LINE; }

  long forward_scratch() const { return packed() + slots * rows() * widest; }
  long backward_slot() const { return sums() + 3 * rows() * widest + block * terms * LANES<T>; }
  long backward_scratch() const { return turned() + slots * backward_slot(); }
};

}  // namespace tgsr
