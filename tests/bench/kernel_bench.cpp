// Throughput of the kernels in memory, far beyond the caches, in bytes read plus bytes written, beside
// what the machine can do at all (a copy by memcpy, a copy by non-temporal stores) and, where it is
// installed, beside oneDNN's layer normalization of the same tensor.

#include <benchmark/benchmark.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#ifdef LNORM_BENCH_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#endif

#include "backward_bench.hpp"
#include "lnorm/core/chunk.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace {

using lnorm::DType;

constexpr std::int64_t kBytes = std::int64_t{128} << 20;  // of the input

// A tensor of normally distributed numbers (integers: small ones) and room for its result, made
// once per pair of dtypes.
struct Buffers {
  DType in;
  DType out;
  std::span<std::byte> x;
  std::span<std::byte> y;
};

// Aligned as tensors usually are.
std::span<std::byte> allocate(std::size_t size) {
  return {static_cast<std::byte*>(std::aligned_alloc(4096, size)), size};
}

void fill(Buffers& buffers) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const std::size_t size = lnorm::item_size(buffers.in);
  std::vector<double> numbers(1 << 16);
  for (double& number : numbers) number = normal(random);
  std::vector<std::byte> pattern(numbers.size() * size);
  if (lnorm::is_floating(buffers.in)) {
    lnorm::store(numbers.data(), static_cast<std::int64_t>(numbers.size()), buffers.in,
                 pattern.data());
  } else {
    for (std::byte& byte : pattern) byte = static_cast<std::byte>(random());
  }
  for (std::size_t i = 0; i < buffers.x.size(); i += pattern.size()) {
    std::memcpy(buffers.x.data() + i, pattern.data(),
                std::min(pattern.size(), buffers.x.size() - i));
  }
}

Buffers& buffers_of(DType in, DType out) {
  static Buffers buffers{DType::float64, DType::float64, {}, {}};
  if (!buffers.x.empty() && buffers.in == in && buffers.out == out) return buffers;
  buffers.in = in;
  buffers.out = out;
  const auto elements = static_cast<std::size_t>(kBytes) / lnorm::item_size(in);
  std::free(buffers.x.data());
  std::free(buffers.y.data());
  buffers.x = allocate(static_cast<std::size_t>(kBytes));
  buffers.y = allocate(elements * lnorm::item_size(buffers.out));
  std::fill(buffers.y.begin(), buffers.y.end(), std::byte{});
  fill(buffers);
  return buffers;
}

// Runs work(first, count) over parts of [0, items), on one thread or on all.
void measure(benchmark::State& state, Buffers& buffers, std::int64_t items, int threads,
             const std::function<void(std::int64_t, std::int64_t)>& work) {
  tbb::task_arena arena(threads);
  const std::int64_t grain = std::max<std::int64_t>(1, items / 8);
  for (auto _ : state) {
    arena.execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::int64_t>(0, items, static_cast<std::size_t>(grain)),
          [&](const auto& range) { work(range.begin(), range.end() - range.begin()); });
    });
  }
  const auto moved = static_cast<double>(buffers.x.size() + buffers.y.size());
  state.counters["bytes"] = benchmark::Counter(moved, benchmark::Counter::kIsIterationInvariantRate,
                                               benchmark::Counter::kIs1000);
}

void copy(benchmark::State& state, int threads) {
  Buffers& b = buffers_of(DType::float32, DType::float32);
  measure(state, b, kBytes / 4096, threads, [&](std::int64_t first, std::int64_t count) {
    std::memcpy(b.y.data() + first * 4096, b.x.data() + first * 4096,
                static_cast<std::size_t>(count) * 4096);
  });
}

#ifdef __SSE2__
void copy_non_temporal(benchmark::State& state, int threads) {
  Buffers& b = buffers_of(DType::float32, DType::float32);
  measure(state, b, kBytes / 4096, threads, [&](std::int64_t first, std::int64_t count) {
    const std::byte* from = b.x.data() + first * 4096;
    std::byte* to = b.y.data() + first * 4096;
    for (std::int64_t i = 0; i < count * 4096; i += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
    _mm_sfence();
  });
}
#endif

void layer_norm(benchmark::State& state, const lnorm::Backend& backend, DType in, DType out,
                std::int64_t width, int threads) {
  Buffers& b = buffers_of(in, out);
  const auto in_row = width * static_cast<std::int64_t>(lnorm::item_size(b.in));
  const auto out_row = width * static_cast<std::int64_t>(lnorm::item_size(b.out));
  const lnorm::Affine affine;
  measure(state, b, kBytes / in_row, threads, [&](std::int64_t first, std::int64_t count) {
    backend.layer_norm({b.x.data() + first * in_row, b.in, std::endian::native, count, width},
                       {b.y.data() + first * out_row, b.out}, affine, {}, {});
  });
}

#ifdef LNORM_BENCH_ONEDNN
void onednn(benchmark::State& state, std::int64_t width, int threads) {
  using dnnl::memory;
  Buffers& b = buffers_of(DType::float32, DType::float32);
  omp_set_num_threads(threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc shape({kBytes / 4 / width, width}, memory::data_type::f32,
                           memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::layer_normalization_forward::primitive_desc description(
      engine, dnnl::prop_kind::forward_inference, shape, shape, 1e-5f,
      dnnl::normalization_flags::none);
#else
  const dnnl::layer_normalization_forward::primitive_desc description(
      {dnnl::prop_kind::forward_inference, shape, 1e-5f, dnnl::normalization_flags::none}, engine);
#endif
  const dnnl::layer_normalization_forward primitive(description);
  memory x(shape, engine, b.x.data());
  memory y(shape, engine, b.y.data());
  for (auto _ : state) {
    primitive.execute(stream, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
    stream.wait();
  }
  state.counters["bytes"] = benchmark::Counter(
      2.0 * kBytes, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}
#endif

template <class Function, class... Arguments>
void add(const std::string& name, Function function, Arguments... arguments) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) { function(state, arguments...); })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  const int all = tbb::info::default_concurrency();
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(all));
  std::vector<int> counts{1};
  if (all > 1) counts.push_back(all);
  for (const int threads : counts) {
    const std::string suffix = lnorm::concat("/threads:", threads);
    add("copy/memcpy" + suffix, copy, threads);
#ifdef __SSE2__
    add("copy/non-temporal" + suffix, copy_non_temporal, threads);
#endif
    for (const std::int64_t width : {64, 256, 768, 1024, 4096, 16384, 65536}) {
      const std::string shape = lnorm::concat("/float32/width:", width);
      for (const lnorm::Backend& backend : lnorm::backends()) {
        if (backend.table == nullptr) continue;  // the reference takes its time
        add(
            backend.name + shape + suffix,
            [&backend](auto& state, std::int64_t w, int t) {
              layer_norm(state, backend, DType::float32, DType::float32, w, t);
            },
            width, threads);
      }
#ifdef LNORM_BENCH_ONEDNN
      add("onednn" + shape + suffix, onednn, width, threads);
#endif
    }
    const lnorm::Backend& best = lnorm::backends().front();
    for (const std::int64_t width : {1, 2, 4, 8, 16, 32, 128}) {
      add(
          lnorm::concat(best.name, "/float32/width:", width, suffix),
          [&best](auto& state, std::int64_t w, int t) {
            layer_norm(state, best, DType::float32, DType::float32, w, t);
          },
          width, threads);
    }
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::float64, DType::int8,
                              DType::uint8, DType::int16, DType::uint16, DType::int32,
                              DType::uint32, DType::int64, DType::uint64, DType::boolean}) {
      const DType out = lnorm::is_floating(dtype) ? dtype : DType::float32;
      for (const std::int64_t width : {64, 768, 65536}) {
        add(
            lnorm::concat(best.name, "/", lnorm::name(dtype), "/width:", width, suffix),
            [&best, dtype, out](auto& state, std::int64_t w, int t) {
              layer_norm(state, best, dtype, out, w, t);
            },
            width, threads);
      }
    }
    for (const DType out : {DType::float8_e4m3fn, DType::float8_e5m2}) {
      for (const std::int64_t width : {64, 768, 65536}) {
        add(
            lnorm::concat(best.name, "/bfloat16-to-", lnorm::name(out), "/width:", width, suffix),
            [&best, out](auto& state, std::int64_t w, int t) {
              layer_norm(state, best, DType::bfloat16, out, w, t);
            },
            width, threads);
      }
    }
  }
  add_backward(counts);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
