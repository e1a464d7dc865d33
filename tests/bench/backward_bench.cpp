// dx, dweight and dbias in memory, beside oneDNN's backward pass with the same outputs, which is given the mean and the
// variance of its forward pass.

#include "backward_bench.hpp"

#include <benchmark/benchmark.h>
#include <tbb/blocked_range.h>
#include <tbb/cache_aligned_allocator.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#ifdef LNORM_BENCH_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#endif

#include "lnorm/core/text.hpp"
#include "lnorm/kernel/backward.hpp"

namespace {

using lnorm::DType;

constexpr std::int64_t kElements = std::int64_t{32} << 20;

// As frameworks align tensors.
using Floats = std::vector<float, tbb::cache_aligned_allocator<float>>;

struct Tensors {
  Floats x = normal(1);
  Floats dy = normal(2);
  Floats dx = Floats(kElements);

  static Floats normal(unsigned seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> distribution;
    Floats numbers(kElements);
    for (float& number : numbers) number = distribution(random);
    return numbers;
  }
};

Tensors& tensors() {
  static Tensors all;
  return all;
}

void count_bytes(benchmark::State& state, std::int64_t elements) {
  state.counters["bytes"] = benchmark::Counter(12.0 * static_cast<double>(elements),
                                               benchmark::Counter::kIsIterationInvariantRate,
                                               benchmark::Counter::kIs1000);
}

void backward(benchmark::State& state, const lnorm::Backend& backend, std::int64_t width,
              int threads) {
  Tensors& t = tensors();
  const std::int64_t rows = kElements / width;
  const lnorm::AffineTerm weight({"weight", DType::float32, {width}},
                                 std::vector<std::byte>(static_cast<std::size_t>(4 * width)), true);
  const lnorm::Formula formula;
  const auto rows_at = [&](Floats& numbers, std::int64_t first, std::int64_t count) {
    return lnorm::RowsIn{reinterpret_cast<const std::byte*>(numbers.data() + first * width),
                         DType::float32, std::endian::native, count, width};
  };
  const lnorm::RowReplay again{
      1, [&](const auto& see) {
        for (std::int64_t r = 0; r < rows; ++r) {
          const lnorm::GradientPart row{rows_at(t.x, r, 1), rows_at(t.dy, r, 1)};
          see(
              0, [&](const auto& see_part) { see_part(row); }, nullptr);
        }
      }};
  const std::int64_t grain = std::max<std::int64_t>(1, rows / 8);
  tbb::task_arena arena(threads);
  for (auto _ : state) {
    std::deque<lnorm::ColumnGradients> columns;
    for (int i = 0; i < threads; ++i) columns.emplace_back(width);
    arena.execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::int64_t>(0, rows, static_cast<std::size_t>(grain)),
          [&](const auto& range) {
            const std::int64_t first = range.begin();
            const std::int64_t count = range.end() - first;
            layer_norm_backward(
                backend, rows_at(t.x, first, count), rows_at(t.dy, first, count),
                {reinterpret_cast<std::byte*>(t.dx.data() + first * width), DType::float32}, weight,
                formula, nullptr,
                &columns[static_cast<std::size_t>(tbb::this_task_arena::current_thread_index())]);
          });
    });
    for (int i = 1; i < threads; ++i) columns[0].merge(columns[static_cast<std::size_t>(i)]);
    const lnorm::GradientSetting setting{backend, DType::float32, DType::float32, DType::float32,
                                         width,   weight,         formula};
    benchmark::DoNotOptimize(
        parameter_gradients(setting, columns[0], {.dtype = DType::float32}, again));
  }
  count_bytes(state, rows * width);
}

#ifdef LNORM_BENCH_ONEDNN
void onednn(benchmark::State& state, std::int64_t width, int threads) {
  using dnnl::memory;
  using dnnl::normalization_flags;
  using Forward = dnnl::layer_normalization_forward::primitive_desc;
  using Backward = dnnl::layer_normalization_backward::primitive_desc;
  Tensors& t = tensors();
  const std::int64_t rows = kElements / width;
  omp_set_num_threads(threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc shape({rows, width}, memory::data_type::f32, memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
  const auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  const Forward forward(engine, dnnl::prop_kind::forward_training, shape, shape, 1e-5f, flags);
  const Backward backward(engine, dnnl::prop_kind::backward, shape, shape, shape, 1e-5f, flags,
                          forward);
  const memory::desc parameter({width}, memory::data_type::f32, memory::format_tag::a);
  const std::vector<int> parameters{DNNL_ARG_SCALE, DNNL_ARG_SHIFT};
  const std::vector<int> gradients{DNNL_ARG_DIFF_SCALE, DNNL_ARG_DIFF_SHIFT};
#else
  const auto flags = normalization_flags::use_scale_shift;
  const Forward forward({dnnl::prop_kind::forward_training, shape, 1e-5f, flags}, engine);
  const Backward backward({dnnl::prop_kind::backward, shape, shape, 1e-5f, flags}, engine, forward);
  const memory::desc parameter({2, width}, memory::data_type::f32, memory::format_tag::nc);
  const std::vector<int> parameters{DNNL_ARG_SCALE_SHIFT};
  const std::vector<int> gradients{DNNL_ARG_DIFF_SCALE_SHIFT};
#endif
  memory x(shape, engine, t.x.data());
  memory dy(shape, engine, t.dy.data());
  memory dx(shape, engine, t.dx.data());
  memory mean(forward.mean_desc(), engine);
  memory variance(forward.variance_desc(), engine);
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, x}, {DNNL_ARG_MEAN, mean}, {DNNL_ARG_VARIANCE, variance}};
  for (const int name : parameters) {
    const memory ones(parameter, engine);
    std::fill_n(static_cast<float*>(ones.get_data_handle()), parameter.get_size() / 4, 1.0F);
    arguments.emplace(name, ones);
  }
  std::unordered_map<int, memory> forward_arguments = arguments;
  forward_arguments.emplace(DNNL_ARG_DST, dx);
  dnnl::layer_normalization_forward(forward).execute(stream, forward_arguments);
  for (const int name : gradients) arguments.emplace(name, memory(parameter, engine));
  arguments.emplace(DNNL_ARG_DIFF_DST, dy);
  arguments.emplace(DNNL_ARG_DIFF_SRC, dx);
  stream.wait();
  const dnnl::layer_normalization_backward primitive(backward);
  for (auto _ : state) {
    primitive.execute(stream, arguments);
    stream.wait();
  }
  count_bytes(state, rows * width);
}
#endif

}  // namespace

void add_backward(const std::vector<int>& thread_counts) {
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->UseRealTime()->Unit(benchmark::kMillisecond);
  };
  for (const int threads : thread_counts) {
    for (const std::int64_t width : {8, 16, 32, 64, 128, 768, 4096}) {
      const std::string shape =
          lnorm::concat("/backward/float32/width:", width, "/threads:", threads);
      for (const lnorm::Backend& backend : lnorm::backends()) {
        if (backend.table == nullptr) continue;  // the reference takes its time
        add(backend.name + shape,
            [&backend, width, threads](auto& state) { backward(state, backend, width, threads); });
      }
#ifdef LNORM_BENCH_ONEDNN
      add("onednn" + shape, [width, threads](auto& state) { onednn(state, width, threads); });
#endif
    }
  }
}
