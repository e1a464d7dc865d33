// Gradients, and rows in parts: ranks give the bytes that one of them gives alone.

#include <optional>

#include "lnorm/pipeline/grad.hpp"
#include "lnorm/pipeline/long_rows.hpp"
#include "lnorm/pipeline/row_writer.hpp"
#include "support/pace.hpp"
#include "support/thread_ranks.hpp"
#include "unit/pipeline/rank_tensors.hpp"

namespace {

using lnorm::DType;
using lnorm::MemoryOrder;
using lnorm::Shape;
using support::kInfinity;

struct Case {
  Shape shape;
  std::vector<std::int64_t> axes;
};

const std::vector<Case> kCases{{{7, 6}, {-1}},         {{2, 9}, {-1}},   {{1, 40}, {-1}},
                               {{0, 5}, {-1}},         {{4, 0}, {-1}},   {{6, 5}, {0}},
                               {{3, 4, 5}, {0, 2}},    {{3, 4, 5}, {1}}, {{16, 3}, {-1}},
                               {{2, 3, 2, 4}, {1, 2}}, {{23, 1}, {-1}},  {{5}, {0}}};

// What the elements are like.
enum class Kind { plain, cancels, ties, non_finite };

// dy: the second tensor of two.
std::vector<double> values(const Shape& shape, Kind kind, bool is_dy) {
  const std::int64_t count = lnorm::element_count(shape);
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    // From both ends alike, with the other sign.
    const std::int64_t mirrored = std::min(i, count - 1 - i);
    const std::int64_t at = kind == Kind::cancels ? mirrored : i;
    double value = static_cast<double>((at * at * 37 + at * 11 + (is_dy ? 5 : 0)) % 101 - 50) / 7;
    if (kind == Kind::cancels && is_dy && i != mirrored) value = -value;
    if (kind == Kind::ties && is_dy) {
      const double terms[] = {1, 0x1p-24, 0x1p-140, 0x1p-11, -0x1p-149};
      value = terms[i * 5 / std::max<std::int64_t>(count, 1)];
    }
    if (kind == Kind::non_finite && i % 13 == 4) value = is_dy ? -kInfinity : std::nan("");
    result.push_back(value);
  }
  return result;
}

struct Setting {
  Case c;
  MemoryOrder order = MemoryOrder::c;
  MemoryOrder dy_order = MemoryOrder::c;
  DType x = DType::float32;
  DType dy = DType::float32;
  DType out = DType::float32;
  DType parameters = DType::float32;
  Kind kind = Kind::plain;
  bool in_parts = false;
  bool is_uniform = false;
  bool is_saved = false;
  bool is_rms = false;
  bool reads_random_access = true;
  bool writes_random_access = true;
  int threads = 1;
  lnorm::RequestedGradients requested = {};
  const char* backend = nullptr;
};

lnorm::LayerNormOptions options_of(const Setting& s) {
  lnorm::LayerNormOptions options;
  options.axes = lnorm::AxisList{s.c.axes};
  options.formula.rms = s.is_rms;
  return options;
}

const lnorm::Backend& backend_of(const Setting& s) {
  return s.backend != nullptr ? lnorm::find_backend(s.backend) : lnorm::backends().front();
}

using Outputs = std::vector<std::vector<std::byte>>;

Outputs gradients(const Setting& s, int count) {
  const auto tensor = [&](DType dtype, MemoryOrder order, bool is_dy) {
    lnorm::TensorInfo info{is_dy ? "dy" : "x", dtype, s.c.shape};
    info.order = order;
    return filled(info, values(s.c.shape, s.kind, is_dy));
  };
  const RankTensor x = tensor(s.x, s.order, false);
  const RankTensor dy = tensor(s.dy, s.dy_order, true);
  const lnorm::LayerNormOptions options = options_of(s);
  lnorm::GradientInputs inputs{x.info, dy.info};
  std::optional<RankTensor> mean;
  std::optional<RankTensor> rstd;
  if (s.is_saved) {
    const Shape rows = lnorm::make_plan(x.info, options, s.out).row_shape(true);
    mean = filled({"mean", DType::float64, rows}, std::vector<double>(3, 0.25));
    rstd = filled({"rstd", DType::float32, rows}, std::vector<double>(50, 1.5));
    inputs.mean = mean->info;
    inputs.rstd = rstd->info;
  }
  lnorm::GradPlan plan = lnorm::make_grad_plan(inputs, options, s.out, s.requested);
  if (plan.rows.row_length > 0) cut_small(plan.rows, s.in_parts);
  lnorm::TensorInfo parameters = lnorm::parameter_gradient(plan.rows, nullptr, s.parameters);
  if (s.is_uniform) parameters.shape.clear();
  const lnorm::AffineTerm weight =
      s.is_uniform ? lnorm::AffineTerm({"w", DType::float64, {}},
                                       filled({"w", DType::float64, {}}, {0.75}).bytes, false)
                   : lnorm::AffineTerm();
  RankTensor dx = unwritten(plan.rows.result());
  RankTensor dweight = unwritten(parameters);
  RankTensor dbias = unwritten(parameters);
  std::vector<int> ends(static_cast<std::size_t>(count));
  const bool is_all_received = support::on_ranks(count, [&](lnorm::Ranks& ranks) {
    MemorySource x_source = x.source(s.reads_random_access);
    MemorySource dy_source = dy.source(s.reads_random_access);
    std::optional<MemorySource> mean_source;
    std::optional<MemorySource> rstd_source;
    if (mean) mean_source.emplace(mean->info, mean->bytes, true);
    if (rstd) rstd_source.emplace(rstd->info, rstd->bytes, true);
    MemorySink dx_sink(dx.bytes, s.writes_random_access);
    MemorySink dweight_sink(dweight.bytes, true);
    MemorySink dbias_sink(dbias.bytes, false);
    lnorm::run_grad(
        {x_source, dy_source, mean_source ? &*mean_source : nullptr,
         rstd_source ? &*rstd_source : nullptr},
        plan, backend_of(s), weight, parameters,
        {s.requested.dx ? &dx_sink : nullptr, s.requested.dweight ? &dweight_sink : nullptr,
         s.requested.dbias ? &dbias_sink : nullptr},
        {s.threads, {}, &ranks});
    ends[static_cast<std::size_t>(ranks.rank())] =
        dx_sink.ends + dweight_sink.ends + dbias_sink.ends;
  });
  CHECK(is_all_received);
  for (const int each : ends) {
    CHECK(each == int{s.requested.dx} + int{s.requested.dweight} + int{s.requested.dbias});
  }
  return {dx.bytes, dweight.bytes, dbias.bytes};
}

Outputs long_rows(const Setting& s, int count) {
  lnorm::TensorInfo info{"x", s.x, s.c.shape};
  info.order = s.order;
  const RankTensor x = filled(info, values(s.c.shape, s.kind, false));
  lnorm::Plan plan = lnorm::make_plan(info, options_of(s), s.out);
  plan.wants_mean_and_rstd = s.is_saved;
  cut_small(plan, true);
  const lnorm::TensorInfo numbers{"", DType::float64, plan.row_shape(true)};
  RankTensor y = unwritten(plan.result());
  RankTensor sum = unwritten(plan.result());
  RankTensor mean = unwritten(numbers);
  RankTensor rstd = unwritten(numbers);
  std::vector<int> ends(static_cast<std::size_t>(count));
  const bool is_all_received = support::on_ranks(count, [&](lnorm::Ranks& ranks) {
    MemorySource source = x.source(s.reads_random_access);
    MemorySink y_sink(y.bytes, s.writes_random_access);
    MemorySink sum_sink(sum.bytes, true);
    MemorySink mean_sink(mean.bytes, true);
    MemorySink rstd_sink(rstd.bytes, !plan.rows_in_order());
    lnorm::RowWriter mean_writer(mean_sink, plan, &lnorm::RowBlock::mean);
    lnorm::RowWriter rstd_writer(rstd_sink, plan, &lnorm::RowBlock::rstd);
    lnorm::SumWriter sum_writer(sum_sink, plan, s.threads);
    std::vector<lnorm::RowObserver*> observers;
    if (s.is_saved) observers = {&mean_writer, &rstd_writer};
    lnorm::run_long_rows(source, plan, backend_of(s), {}, observers, y_sink,
                         {s.threads, {}, &ranks}, &sum_writer);
    ends[static_cast<std::size_t>(ranks.rank())] =
        y_sink.ends + sum_sink.ends + mean_sink.ends + rstd_sink.ends;
  });
  CHECK(is_all_received);
  for (const int each : ends) CHECK(each == (s.is_saved ? 4 : 2));
  return {y.bytes, sum.bytes, mean.bytes, rstd.bytes};
}

using Do = Outputs (*)(const Setting&, int);

// All settings that differ from this one in one thing.
void check(Do work, const Setting& base) {
  static int number = 0;
  const auto compare = [&](const Setting& s) {
    if (!support::takes(number++, 3)) return;
    const Outputs expected = work(s, 1);
    for (const int count : {2, 3, 5}) {
      CAPTURE(s.c.shape, s.c.axes, s.x, s.dy, s.out, s.parameters, int(s.kind), s.in_parts,
              s.is_uniform, s.is_saved, s.is_rms, s.reads_random_access, s.writes_random_access,
              s.threads, count, s.order == MemoryOrder::fortran,
              s.dy_order == MemoryOrder::fortran);
      const Outputs actual = work(s, count);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        CHECK((actual[i] == expected[i]));
      }
    }
  };
  const auto with = [&](auto change) {
    Setting s = base;
    change(s);
    compare(s);
  };
  compare(base);
  for (const Kind kind : {Kind::cancels, Kind::ties, Kind::non_finite}) {
    with([&](Setting& s) { s.kind = kind; });
    with([&](Setting& s) { s.kind = kind, s.is_uniform = true; });
    with([&](Setting& s) { s.kind = kind, s.parameters = DType::float64; });
    with([&](Setting& s) { s.kind = kind, s.requested = {false, true, false}; });
    with([&](Setting& s) { s.kind = kind, s.requested = {true, false, true}; });
  }
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float64}) {
    with([&](Setting& s) { s.x = s.dy = s.out = s.parameters = dtype; });
  }
  with([](Setting& s) { s.x = DType::int32; });
  with([](Setting& s) { s.order = s.dy_order = MemoryOrder::fortran; });
  with([](Setting& s) { s.dy_order = MemoryOrder::fortran; });
  with([](Setting& s) { s.is_saved = true; });
  with([](Setting& s) { s.is_saved = true, s.order = s.dy_order = MemoryOrder::fortran; });
  with([](Setting& s) { s.is_uniform = true; });
  with([](Setting& s) { s.is_rms = true; });
  with([](Setting& s) { s.reads_random_access = false; });
  with([](Setting& s) { s.writes_random_access = false; });
  with([](Setting& s) { s.threads = 2; });
  with([](Setting& s) { s.backend = "reference"; });
}

}  // namespace

TEST_CASE("ranks find the gradients that one rank finds", "[ranks]") {
  const bool in_parts = GENERATE(false, true);
  for (const Case& c : kCases) {
    check(gradients, {.c = c, .in_parts = in_parts});
  }
}

TEST_CASE("ranks normalize long rows as one rank does", "[ranks]") {
  for (const Case& c : kCases) {
    if (lnorm::element_count(c.shape) > 0) check(long_rows, {.c = c, .in_parts = true});
  }
}

TEST_CASE("ranks refuse a tensor that another rank has otherwise", "[ranks]") {
  Setting setting{.c = {{6, 4}, {-1}}};
  const lnorm::TensorInfo info{"x", DType::float32, {6, 4}};
  const lnorm::GradPlan plan = lnorm::make_grad_plan({info, info}, options_of(setting));
  CHECK_THROWS_WITH(
      support::on_ranks(3,
                        [&](lnorm::Ranks& ranks) {
                          lnorm::TensorInfo dy = info;
                          dy.name = "dy";
                          if (ranks.rank() == 2) dy.dtype = DType::float64;
                          MemorySource x_source = unwritten(info).source(true);
                          MemorySource dy_source = unwritten(dy).source(true);
                          MemorySink dx(96);
                          lnorm::run_grad({x_source, dy_source}, plan, lnorm::backends().front(),
                                          {}, {}, {&dx}, {1, {}, &ranks});
                        }),
      "dy: is float64, shape (6, 4), expected float32, shape (6, 4), as rank 0 has it");
}
