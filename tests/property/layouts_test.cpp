// Fortran order and axes that are not the last ones, against the same tensor with its elements moved
// one by one to where rows lie one after another.

#include "lnorm/kernel/softmax.hpp"
#include "lnorm/layout/reorder.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/long_rows.hpp"
#include "lnorm/pipeline/row_writer.hpp"
#include "lnorm/pipeline/run.hpp"
#include "property/data.hpp"
#include "support/files.hpp"
#include "support/pace.hpp"
#include "unit/pipeline/memory_tensor.hpp"

namespace {

using lnorm::Shape;

struct Case {
  Shape shape;
  std::vector<std::int64_t> axes;
};

std::vector<float> random_values(std::int64_t n) {
  return support::normals<float>(n, static_cast<std::uint64_t>(n), 3, 2);
}

// The tensor with the normalized axes last.
struct Moved {
  std::vector<std::size_t> places;  // of the elements, which come in C order
  std::int64_t row_length = 1;

  Moved(const Shape& shape, const std::vector<std::int64_t>& axes) {
    std::vector<std::size_t> order;
    for (const bool normalized : {false, true}) {
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        const bool is =
            std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
        if (is != normalized) continue;
        order.push_back(axis);
        if (is) row_length *= shape[axis];
      }
    }
    for (std::int64_t i = 0; i < lnorm::element_count(shape); ++i) {
      const Shape index = lnorm::index_of(i, shape);
      std::int64_t place = 0;
      for (const std::size_t axis : order) place = place * shape[axis] + index[axis];
      places.push_back(static_cast<std::size_t>(place));
    }
  }
  // Puts results of rows back to where the elements were.
  std::vector<std::byte> back(const std::vector<std::byte>& results) const {
    const auto from = support::elements_of<float>(results);
    std::vector<float> to;
    for (const std::size_t place : places) to.push_back(from[place]);
    return support::as_bytes(to);
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
  bool in_memory = false;  // with random access
};

template <class Run>
Result result_of(const lnorm::TensorInfo& info, const std::vector<std::byte>& bytes,
                 const lnorm::Plan& plan, const Way& way, Run run) {
  MemorySource source(info, bytes, way.source_random_access);
  source.is_in_memory = way.in_memory;
  const auto sink = [&](std::size_t size) {
    return way.sink_random_access ? std::make_unique<MemorySink>(size)
                                  : std::make_unique<MemorySink>();
  };
  const auto y = sink(bytes.size());
  y->is_in_memory = way.in_memory;
  const auto rows = static_cast<std::size_t>(plan.rows);
  const bool scattered = !plan.rows_in_order() && way.sink_random_access;
  MemorySink mean = scattered ? MemorySink(8 * rows) : MemorySink();
  MemorySink rstd = scattered ? MemorySink(8 * rows) : MemorySink();
  lnorm::RowWriter means(mean, plan, &lnorm::RowBlock::mean);
  lnorm::RowWriter rstds(rstd, plan, &lnorm::RowBlock::rstd);
  lnorm::RowObserver* const observers[] = {&means, &rstds};
  Progress progress;
  run(source, observers, *y, lnorm::RunOptions{way.threads, progress.report()});
  CHECK(source.finished);
  CHECK(y->finished);
  progress.check_end(plan.rows * plan.row_length);
  return {y->bytes, mean.bytes, rstd.bytes};
}

void check(const Case& c, lnorm::MemoryOrder order, std::initializer_list<Way> ways) {
  const std::int64_t n = lnorm::element_count(c.shape);
  const Moved moved(c.shape, c.axes);
  const std::vector<float> values = random_values(n);  // in C order
  const std::vector<std::byte> file = support::as_bytes(
      order == lnorm::MemoryOrder::c ? values : support::moved_to_fortran_order(c.shape, values));
  std::vector<float> rows(values.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[moved.places[i]] = values[i];
  const std::int64_t row_count = n / moved.row_length;
  std::vector<double> mean(static_cast<std::size_t>(row_count));
  std::vector<double> rstd(mean.size());
  const lnorm::Backend& backend = lnorm::backends().front();
  const std::vector<std::byte> row_bytes = support::as_bytes(rows);
  const lnorm::RowsIn x{row_bytes.data(), lnorm::DType::float32, std::endian::native, row_count,
                        moved.row_length};
  const auto y = moved.back(
      property::normalized(backend, x, lnorm::DType::float32, {}, {}, {mean.data(), rstd.data()}));
  const auto softmax = moved.back(property::softmax(x, lnorm::DType::float32));

  lnorm::TensorInfo info{"x", lnorm::DType::float32, c.shape};
  info.order = order;
  lnorm::LayerNormOptions options;
  options.axes = lnorm::AxisList{c.axes};
  static int number = 0;
  ++number;  // each tensor another way, where not all are taken
  for (const Way& way : ways) {
    if (ways.size() > 2 && !support::takes(number++)) continue;
    lnorm::Plan plan = lnorm::make_plan(info, options, {}, {.in_tiles = way.in_tiles});
    plan.wants_mean_and_rstd = true;
    if (way.in_tiles) plan.route.block_rows = 1 + plan.route.block_rows / 3;
    CAPTURE(c.shape, c.axes, order == lnorm::MemoryOrder::fortran, way.source_random_access,
            way.sink_random_access, way.in_memory, way.threads, plan.route.in_parts,
            plan.route.in.transposes, plan.route.rows, plan.route.block_rows);
    const Result result =
        result_of(info, file, plan, way,
                  [&](auto& source, const auto& observers, auto& sink, const auto& run_options) {
                    if (plan.route.in_parts) {
                      lnorm::run_long_rows(source, plan, backend, {}, observers, sink, run_options);
                    } else {
                      lnorm::run(source, plan, normalize, observers, &sink, run_options);
                    }
                  });
    CHECK((result.y == y));
    CHECK((result.mean == support::as_bytes(mean)));
    CHECK((result.rstd == support::as_bytes(rstd)));

    // Softmax holds rows, however long they are.
    MemorySource source(info, file, way.source_random_access);
    source.is_in_memory = way.in_memory;
    MemorySink sink;
    const lnorm::Plan whole =
        lnorm::make_plan(info, options, {}, {.whole = true, .in_tiles = way.in_tiles});
    lnorm::run(source, whole,
               [](const lnorm::RowsIn& in, const lnorm::RowsOut& out, const lnorm::RowNumbersOut&) {
                 lnorm::softmax(in, out);
               },
               {}, &sink, {way.threads, {}});
    CHECK((sink.bytes == softmax));
  }
}

}  // namespace

TEST_CASE("any axes of any order give the bits of the same rows one after another", "[layouts]") {
  const auto order = GENERATE(lnorm::MemoryOrder::c, lnorm::MemoryOrder::fortran);
  static int number = 0;
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
    if (lnorm::element_count(c.shape) > 100'000 && !support::takes(number++, 2)) continue;
    check(c, order,
          {{true, true, 2},
           {false, false, 1},
           {true, false, 3},
           {true, true, 2, true},
           {false, true, 2, true},
           {true, false, 1, true},
           {true, true, 2, false, true},
           {true, true, 2, true, true}});
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
  at(7, 12) = static_cast<float>(support::kInfinity);
  at(9, 19999) = static_cast<float>(support::kNan);
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
  static int number = 0;
  if (!support::takes(number++, 3)) return;
  const lnorm::Affine affine{{}, {term, support::as_bytes(bias), false}};
  for (const lnorm::Backend& backend : lnorm::backends()) {
    CAPTURE(backend.name, plan.wants_mean_and_rstd, options.formula.eps, bias[0]);
    // The reference takes its time: once is enough.
    const bool is_first = !plan.wants_mean_and_rstd && bias[0] < 1 && !support::kIsSlow;
    if (backend.table == nullptr && !is_first) continue;
    const std::vector<std::byte> row_bytes = support::as_bytes(rows);
    const auto y = support::elements_of<float>(property::normalized(
        backend, {row_bytes.data(), info.dtype, std::endian::native, kRows, kLength}, info.dtype,
        affine, options.formula));
    MemorySource source(info, support::as_bytes(file), true);
    MemorySink sink;
    lnorm::run_long_rows(source, plan, backend, affine, {}, sink, {2, {}});
    const auto actual = support::elements_of<float>(sink.bytes);
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
    const std::vector<float> values = random_values(lnorm::element_count(shape));
    const std::vector<float> file = support::moved_to_fortran_order(shape, values);
    lnorm::TensorInfo info{"x", lnorm::DType::float32, shape};
    info.order = lnorm::MemoryOrder::fortran;
    for (const bool positions : {false, true}) {
      CAPTURE(shape, positions);
      const auto source = [&] {
        return std::make_unique<MemorySource>(info, support::as_bytes(file), positions);
      };
      const auto gathered = lnorm::gathered(source());
      CHECK(gathered->info().order == lnorm::MemoryOrder::c);
      CHECK((read_all(*gathered) == support::as_bytes(values)));
      if (shape.size() < 2) continue;
      MemorySource given(info, support::as_bytes(file), positions);
      CHECK((read_all(*lnorm::transposed(given, lnorm::for_each_tile(0))) ==
             support::as_bytes(values)));
    }
  }
}
