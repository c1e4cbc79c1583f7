// The two passes behind XLA's foreign function interface. Nothing here is static or allocated for long: XLA hands in
// all large arrays, so that any number of calls may run at the same time.
#include <atomic>
#include <memory>
#include <thread>

#include "passes.h"
#include "xla/ffi/api/ffi.h"

namespace {

namespace ffi = xla::ffi;
using namespace tgsr;
using Numbers = ffi::Span<const int64_t>;

// Run task(0) ... task(count - 1) on XLA's threads and on this one, which takes whatever nobody else has begun: it
// waits only for tasks that are running, so calls that share the threads cannot block one another.
template <class Task>
void share_out(ffi::ThreadPool& pool, long count, const Task& task) {
  struct Queue {
    std::atomic<long> next{0}, done{0};
    const Task* task;
    long count;
    void work() {
      for (long i; (i = next.fetch_add(1)) < count;) {
        (*task)(i);
        done.fetch_add(1, std::memory_order_release);
      }
    }
  };
  auto queue = std::make_shared<Queue>();  // outlives this call: a helper may start when all is done
  queue->task = &task;
  queue->count = count;
  const long helpers = std::min<long>(pool.num_threads(), count) - 1;
  for (long i = 0; i < helpers; i++) pool.Schedule([queue] { queue->work(); });
  queue->work();
  while (queue->done.load(std::memory_order_acquire) < count) std::this_thread::yield();
}

template <class T>
struct Call {
  Layout<T> layout;
  Rules rules;
  Call(Numbers widths, Numbers starts, Numbers terms, long points, long channels, long columns)
      : layout(widths.begin(), widths.size(), points, channels, terms.size() / 4),
        rules{channels, columns, reinterpret_cast<const Start*>(starts.begin()), long(starts.size() / 3),
              reinterpret_cast<const Term*>(terms.begin()), long(terms.size() / 4)} {}
};

template <ffi::DataType D>
ffi::Error forward(ffi::ThreadPool pool, ffi::Buffer<D> weights, ffi::Buffer<D> x, ffi::Buffer<D> coefficients,
                   ffi::ResultBuffer<D> outputs, ffi::ResultBuffer<D> kept, ffi::ResultBuffer<D> scratch,
                   Numbers widths, Numbers starts, Numbers terms) {
  using T = ffi::NativeType<D>;
  const Call<T> call(widths, starts, terms, x.dimensions()[0], outputs->dimensions()[0], coefficients.dimensions()[1]);
  const auto& layout = call.layout;
  if (long(weights.element_count()) != layout.weights || call.rules.channels > MOST_CHANNELS ||
      long(kept->element_count()) < layout.blocks * layout.kept ||
      long(scratch->element_count()) < layout.forward_scratch())
    return ffi::Error::InvalidArgument("arrays do not fit the network");
  const Work<T> work{layout, call.rules, weights.typed_data(), x.typed_data(), coefficients.typed_data()};
  T *packed = scratch->typed_data(), *rooms = packed + layout.packed;
  work.pack(packed);
  share_out(pool, layout.slots, [&](long slot) {
    work.forward(slot, packed, rooms + slot * layout.rows() * layout.widest, outputs->typed_data(), kept->typed_data());
  });
  return ffi::Error::Success();
}

template <ffi::DataType D>
ffi::Error backward(ffi::ThreadPool pool, ffi::Buffer<D> weights, ffi::Buffer<D> x, ffi::Buffer<D> coefficients,
                    ffi::Buffer<D> kept, ffi::Buffer<D> slopes, ffi::ResultBuffer<D> by_weights,
                    ffi::ResultBuffer<D> by_x, ffi::ResultBuffer<D> by_coefficients, ffi::ResultBuffer<D> scratch,
                    Numbers widths, Numbers starts, Numbers terms) {
  using T = ffi::NativeType<D>;
  const Call<T> call(widths, starts, terms, x.dimensions()[0], slopes.dimensions()[0], coefficients.dimensions()[1]);
  const auto& layout = call.layout;
  if (long(weights.element_count()) != layout.weights || call.rules.channels > MOST_CHANNELS ||
      long(kept.element_count()) < layout.blocks * layout.kept ||
      long(scratch->element_count()) < layout.backward_scratch())
    return ffi::Error::InvalidArgument("arrays do not fit the network");
  const Work<T> work{layout, call.rules, weights.typed_data(), x.typed_data(), coefficients.typed_data()};
  T *turned = scratch->typed_data(), *rooms = turned + layout.turned;
  work.pack_turned(turned);
  share_out(pool, layout.slots, [&](long slot) {
    work.backward(slot, turned, slopes.typed_data(), kept.typed_data(), rooms + slot * layout.backward_slot(),
                  by_x->typed_data(), by_coefficients->typed_data());
  });
  share_out(pool, layout.hidden + 1, [&](long layer) { work.gather(layer, rooms, by_weights->typed_data()); });
  return ffi::Error::Success();
}

template <ffi::DataType D>
auto bound_forward() {
  using B = ffi::Buffer<D>;
  return ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().template Arg<B>().template Arg<B>().template Arg<B>()
      .template Ret<B>().template Ret<B>().template Ret<B>()
      .template Attr<Numbers>("widths").template Attr<Numbers>("starts").template Attr<Numbers>("terms");
}

template <ffi::DataType D>
auto bound_backward() {
  using B = ffi::Buffer<D>;
  return ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().template Arg<B>().template Arg<B>().template Arg<B>()
      .template Arg<B>().template Arg<B>()
      .template Ret<B>().template Ret<B>().template Ret<B>().template Ret<B>()
      .template Attr<Numbers>("widths").template Attr<Numbers>("starts").template Attr<Numbers>("terms");
}

template <class T>
void sizes_of(const int64_t* widths, int64_t count, int64_t points, int64_t channels, int64_t terms, int64_t* sizes) {
  const Layout<T> layout(widths, count, points, channels, terms);
  sizes[0] = layout.blocks * layout.kept;
  sizes[1] = layout.forward_scratch();
  sizes[2] = layout.backward_scratch();
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(tgsr_forward_float32, forward<ffi::F32>, bound_forward<ffi::F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(tgsr_forward_float64, forward<ffi::F64>, bound_forward<ffi::F64>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(tgsr_backward_float32, backward<ffi::F32>, bound_backward<ffi::F32>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(tgsr_backward_float64, backward<ffi::F64>, bound_backward<ffi::F64>());

// How many numbers the caller must provide: kept between the passes, and scratch for either.
extern "C" void tgsr_sizes(int64_t item_bytes, const int64_t* widths, int64_t count, int64_t points, int64_t channels,
                           int64_t terms, int64_t* sizes) {
  if (item_bytes == 4)
    sizes_of<float>(widths, count, points, channels, terms, sizes);
  else
    sizes_of<double>(widths, count, points, channels, terms, sizes);
}

extern "C" int64_t tgsr_vector_bytes() { return VECTOR_BYTES; }
