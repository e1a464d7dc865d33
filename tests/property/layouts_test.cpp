// Fortran order and axes that are not the last ones, against the same tensor with its elements moved
// one by one to where rows lie one after another.

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>

#include "lnorm/kernel/softmax.hpp"
#include "lnorm/layout/reorder.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/long_rows.hpp"
#include "lnorm/pipeline/row_writer.hpp"
#include "lnorm/pipeline/run.hpp"
#include "support/catch.hpp"
#include "unit/pipeline/memory_tensor.hpp"

namespace {

using lnorm::Shape;

struct Case {
  Shape shape;
  std::vector<std::int64_t> axes;
};

// The index of element i in C order, and back, in either order.
Shape index_of(const Shape& shape, std::int64_t i) {
  Shape index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) index[axis] = i % shape[axis];
  return index;
}
std::int64_t c_position(const Shape& shape, const Shape& index) {
  std::int64_t position = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    position = position * shape[axis] + index[axis];
  }
  return position;
}
std::int64_t fortran_position(const Shape& shape, const Shape& index) {
  std::int64_t position = 0;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    position = position * shape[axis] + index[axis];
  }
  return position;
}

template <class T>
std::vector<std::byte> as_bytes(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::vector<T> from_bytes(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> random_values(std::int64_t n) {
  std::mt19937 random(static_cast<unsigned>(n));
  std::normal_distribution<float> normal(3, 2);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

// The tensor with the normalized axes last.
struct Moved {
  Shape shape;
  std::vector<std::size_t> order;
  std::int64_t row_length = 1;

  Moved(const Shape& from, const std::vector<std::int64_t>& axes) {
    for (const bool normalized : {false, true}) {
      for (std::size_t axis = 0; axis < from.size(); ++axis) {
        const bool is =
            std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
        if (is != normalized) continue;
        order.push_back(axis);
        shape.push_back(from[axis]);
        if (is) row_length *= from[axis];
      }
    }
  }
  Shape index(const Shape& from) const {
    Shape result;
    for (const std::size_t axis : order) result.push_back(from[axis]);
    return result;
  }
};

struct Result {
  std::vector<std::byte> y, mean, rstd;
};

struct Way {
  bool source_random_access;
  bool sink_random_access;
  int threads;
  bool in_tiles = false;
};

template <class Run>
Result result_of(const lnorm::TensorInfo& info, const std::vector<std::byte>& bytes,
                 const lnorm::Plan& plan, const Way& way, Run run) {
  MemorySource source(info, bytes, way.source_random_access);
  const auto sink = [&](std::size_t size) {
    return way.sink_random_access ? std::make_unique<MemorySink>(size)
                                  : std::make_unique<MemorySink>();
  };
  const auto y = sink(bytes.size());
  const auto rows = static_cast<std::size_t>(plan.rows);
  const bool scattered = !plan.rows_in_order() && way.sink_random_access;
  MemorySink mean = scattered ? MemorySink(8 * rows) : MemorySink();
  MemorySink rstd = scattered ? MemorySink(8 * rows) : MemorySink();
  lnorm::RowWriter means(mean, plan, &lnorm::RowBlock::mean);
  lnorm::RowWriter rstds(rstd, plan, &lnorm::RowBlock::rstd);
  lnorm::RowObserver* const observers[] = {&means, &rstds};
  std::int64_t done = 0;
  const lnorm::RunOptions options{way.threads, [&](std::int64_t elements) {
                                    CHECK(elements >= done);
                                    done = elements;
                                  }};
  run(source, observers, *y, options);
  CHECK(source.finished);
  CHECK(y->finished);
  CHECK(done == plan.rows * plan.row_length);
  return {y->bytes, mean.bytes, rstd.bytes};
}

void check(const Case& c, lnorm::MemoryOrder order, std::initializer_list<Way> ways) {
  const std::int64_t n = lnorm::element_count(c.shape);
  const Moved moved(c.shape, c.axes);
  const std::vector<float> values = random_values(n);  // in C order
  std::vector<float> file(values.size());
  std::vector<float> rows(values.size());
  for (std::int64_t i = 0; i < n; ++i) {
    const Shape index = index_of(c.shape, i);
    const std::int64_t position =
        order == lnorm::MemoryOrder::c ? i : fortran_position(c.shape, index);
    file[static_cast<std::size_t>(position)] = values[static_cast<std::size_t>(i)];
    rows[static_cast<std::size_t>(c_position(moved.shape, moved.index(index)))] =
        values[static_cast<std::size_t>(i)];
  }
  const std::int64_t row_count = n / moved.row_length;
  std::vector<float> y(values.size());
  std::vector<double> mean(static_cast<std::size_t>(row_count));
  std::vector<double> rstd(mean.size());
  const lnorm::Kernel& kernel = lnorm::kernels().front();
  const std::vector<std::byte> row_bytes = as_bytes(rows);
  kernel.layer_norm(
      {row_bytes.data(), lnorm::DType::float32, std::endian::native, row_count, moved.row_length},
      {reinterpret_cast<std::byte*>(y.data()), lnorm::DType::float32}, {}, {},
      {mean.data(), rstd.data()});
  std::vector<float> softmax(values.size());
  lnorm::softmax(
      {row_bytes.data(), lnorm::DType::float32, std::endian::native, row_count, moved.row_length},
      {reinterpret_cast<std::byte*>(softmax.data()), lnorm::DType::float32});
  std::vector<float> y_moved_back(values.size());
  std::vector<float> softmax_moved_back(values.size());
  for (std::int64_t i = 0; i < n; ++i) {
    const auto to = static_cast<std::size_t>(i);
    const auto from =
        static_cast<std::size_t>(c_position(moved.shape, moved.index(index_of(c.shape, i))));
    y_moved_back[to] = y[from];
    softmax_moved_back[to] = softmax[from];
  }

  lnorm::TensorInfo info{"x", lnorm::DType::float32, c.shape};
  info.order = order;
  lnorm::LayerNormOptions options;
  options.axes = lnorm::AxisList{c.axes};
  const auto transform = [&](const lnorm::RowsIn& x, const lnorm::RowsOut& out,
                             const lnorm::MeanAndRstd& stats) {
    kernel.layer_norm(x, out, {}, {}, stats);
  };
  for (const Way& way : ways) {
    lnorm::Plan plan = lnorm::make_plan(info, options, {}, {.in_tiles = way.in_tiles});
    plan.wants_mean_and_rstd = true;
    if (way.in_tiles) plan.route.block_rows = 1 + plan.route.block_rows / 3;
    CAPTURE(c.shape, c.axes, order == lnorm::MemoryOrder::fortran, way.source_random_access,
            way.sink_random_access, way.threads, plan.route.in_parts, plan.route.in.transposes,
            plan.route.rows, plan.route.block_rows);
    const Result result =
        result_of(info, as_bytes(file), plan, way,
                  [&](auto& source, const auto& observers, auto& sink, const auto& run_options) {
                    if (plan.route.in_parts) {
                      lnorm::run_long_rows(source, plan, kernel, {}, observers, sink, run_options);
                    } else {
                      lnorm::run(source, plan, transform, observers, &sink, run_options);
                    }
                  });
    CHECK((result.y == as_bytes(y_moved_back)));
    CHECK((result.mean == as_bytes(mean)));
    CHECK((result.rstd == as_bytes(rstd)));

    // Softmax holds rows, however long they are.
    MemorySource source(info, as_bytes(file), way.source_random_access);
    MemorySink sink;
    const lnorm::Plan whole =
        lnorm::make_plan(info, options, {}, {.whole = true, .in_tiles = way.in_tiles});
    lnorm::run(source, whole,
               [](const lnorm::RowsIn& x, const lnorm::RowsOut& out, const lnorm::MeanAndRstd&) {
                 lnorm::softmax(x, out);
               },
               {}, &sink, {way.threads, {}});
    CHECK((sink.bytes == as_bytes(softmax_moved_back)));
  }
}

}  // namespace

TEST_CASE("any axes of any order give the bits of the same rows one after another", "[layouts]") {
  const auto order = GENERATE(lnorm::MemoryOrder::c, lnorm::MemoryOrder::fortran);
  for (const Case& c : {
           Case{{5}, {0}},
           Case{{3, 4}, {0}},
           Case{{3, 4}, {1}},
           Case{{2, 3, 4}, {0}},
           Case{{2, 3, 4}, {0, 2}},
           Case{{2, 3, 4}, {1}},
           Case{{2, 1, 4, 3}, {1, 2}},
           Case{{2, 3, 2, 3, 2}, {1, 3}},
           Case{{30, 17, 5, 7}, {1}},
           Case{{2, 70, 60, 60}, {1}},  // more than a block
           Case{{9000, 70}, {0}},       // a row of more than a chunk, and of nine
           Case{{20000, 70}, {0}},      // long rows, in two groups
           Case{{70000, 3}, {0}},       // long rows of more than a segment
           Case{{3, 70000}, {1}},
           Case{{2, 40, 3, 4000}, {1, 3}},
       }) {
    check(c, order,
          {{true, true, 2},
           {false, false, 1},
           {true, false, 3},
           {true, true, 2, true},
           {false, true, 2, true},
           {true, false, 1, true}});
  }
}

TEST_CASE("what lies too scattered is transposed first", "[layouts]") {
  const Case scattered{{80, 512, 2, 40}, {1}};
  lnorm::TensorInfo info{"x", lnorm::DType::float32, scattered.shape};
  info.order = lnorm::MemoryOrder::fortran;
  lnorm::LayerNormOptions options;
  options.axes = lnorm::AxisList{scattered.axes};
  CHECK(lnorm::make_plan(info, options).route.in.transposes);
  check(scattered, info.order, {{true, true, 2}, {false, false, 1}});
}

TEST_CASE("rows whose ways differ go through together", "[layouts]") {
  // Columns of which some are ordinary, some have a mean far from the sample, some are constant, some
  // not finite; the bias cancels one.
  constexpr std::int64_t kRows = 70;
  constexpr std::int64_t kLength = 20000;
  std::vector<float> rows = random_values(kRows * kLength);
  const auto at = [&](std::int64_t r, std::int64_t e) -> float& {
    return rows[static_cast<std::size_t>(r * kLength + e)];
  };
  for (std::int64_t e = 0; e < kLength; ++e) {
    at(3, e) = 7;
    at(4, e) += 1e6f;
    at(5, e) = e > kLength / 2 + 10 ? 1e5f + at(5, e) : at(5, e);
    at(6, e) *= 1e-38f;
    at(8, e) = 0;
  }
  at(7, 12) = std::numeric_limits<float>::infinity();
  at(9, 19999) = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> file(rows.size());
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t e = 0; e < kLength; ++e) {
      file[static_cast<std::size_t>(e * kRows + r)] = at(r, e);
    }
  }
  const lnorm::TensorInfo info{"x", lnorm::DType::float32, {kLength, kRows}};
  lnorm::LayerNormOptions options;
  options.axes = lnorm::AxisList{{0}};
  options.formula.eps = GENERATE(0.0, 1e-5);
  lnorm::Plan plan = lnorm::make_plan(info, options);
  REQUIRE(plan.route.in_parts);
  plan.wants_mean_and_rstd = GENERATE(false, true);
  lnorm::TensorInfo term{"b", lnorm::DType::float32, {kLength}};
  std::vector<float> bias(kLength, GENERATE(0.5f, 1e9f));
  const lnorm::Affine affine{{}, {term, as_bytes(bias), false}};
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    CAPTURE(kernel.name, plan.wants_mean_and_rstd, options.formula.eps, bias[0]);
    // The reference takes its time: once is enough.
    if (kernel.passes == nullptr && (plan.wants_mean_and_rstd || bias[0] > 1)) continue;
    std::vector<float> y(rows.size());
    const std::vector<std::byte> row_bytes = as_bytes(rows);
    kernel.layer_norm({row_bytes.data(), info.dtype, std::endian::native, kRows, kLength},
                      {reinterpret_cast<std::byte*>(y.data()), info.dtype}, affine, options.formula,
                      {});
    MemorySource source(info, as_bytes(file), true);
    MemorySink sink;
    lnorm::run_long_rows(source, plan, kernel, affine, {}, sink, {2, {}});
    const auto actual = from_bytes<float>(sink.bytes);
    REQUIRE(actual.size() == y.size());
    int different = 0;
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t e = 0; e < kLength; ++e) {
        different += std::memcmp(&actual[static_cast<std::size_t>(e * kRows + r)],
                                 &y[static_cast<std::size_t>(r * kLength + e)], sizeof(float)) != 0;
      }
    }
    CHECK(different == 0);
  }
}

TEST_CASE("a tensor in Fortran order is read in C order", "[layouts]") {
  for (const Shape& shape : {Shape{7}, Shape{3, 4}, Shape{2, 3, 4}, Shape{20, 300, 100}}) {
    const std::int64_t n = lnorm::element_count(shape);
    const std::vector<float> values = random_values(n);
    std::vector<float> file(values.size());
    for (std::int64_t i = 0; i < n; ++i) {
      file[static_cast<std::size_t>(fortran_position(shape, index_of(shape, i)))] =
          values[static_cast<std::size_t>(i)];
    }
    lnorm::TensorInfo info{"x", lnorm::DType::float32, shape};
    info.order = lnorm::MemoryOrder::fortran;
    for (const bool positions : {false, true}) {
      CAPTURE(shape, positions);
      const auto source = [&] {
        return std::make_unique<MemorySource>(info, as_bytes(file), positions);
      };
      const auto gathered = lnorm::gathered(source());
      CHECK(gathered->info().order == lnorm::MemoryOrder::c);
      CHECK((read_all(*gathered) == as_bytes(values)));
      if (shape.size() < 2) continue;
      MemorySource given(info, as_bytes(file), positions);
      CHECK((read_all(*lnorm::transposed(given, lnorm::for_each_tile(0))) == as_bytes(values)));
    }
  }
}
