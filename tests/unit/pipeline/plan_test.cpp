#include "lnorm/pipeline/plan.hpp"

#include <limits>
#include <string>

#include "lnorm/core/error.hpp"
#include "support/catch.hpp"

using lnorm::AxisList;
using lnorm::DType;
using lnorm::FirstAxis;
using lnorm::LayerNormOptions;
using lnorm::NormalizedAxes;
using lnorm::NormalizedShape;
using lnorm::Plan;
using lnorm::Shape;

namespace {

Plan plan(const Shape& shape, const NormalizedAxes& axes = FirstAxis{}) {
  LayerNormOptions options;
  options.axes = axes;
  return lnorm::make_plan({"x.npy", DType::float32, shape}, options);
}

std::string error_of(const Shape& shape, const NormalizedAxes& axes,
                     const lnorm::Formula& formula = {}) {
  try {
    LayerNormOptions options;
    options.axes = axes;
    options.formula = formula;
    lnorm::make_plan({"x.npy", DType::float32, shape}, options);
  } catch (const lnorm::Error& error) {
    const std::string& axes_to_try = error.remedy().value;
    return error.what() + (error.hint().empty() ? "" : " | " + error.hint()) +
           (axes_to_try.empty() ? "" : " -> " + axes_to_try);
  }
  return "no error";
}

}  // namespace

TEST_CASE("the three ways to name the normalized axes agree", "[plan]") {
  for (const NormalizedAxes& axes :
       {NormalizedAxes(FirstAxis{1}), NormalizedAxes(FirstAxis{-2}),
        NormalizedAxes(NormalizedShape{{3, 4}}), NormalizedAxes(AxisList{{2, 1}}),
        NormalizedAxes(AxisList{{-2, -1}}), NormalizedAxes(AxisList{{1, -1}})}) {
    const Plan p = plan({2, 3, 4}, axes);
    CHECK(p.rows == 2);
    CHECK(p.row_length == 12);
    CHECK(p.normalized_shape() == Shape{3, 4});
    CHECK(p.row_shape(true) == Shape{2, 1, 1});
    CHECK(p.row_shape(false) == Shape{2});
  }
}

TEST_CASE("a zero-dimensional tensor is one row of one element", "[plan]") {
  for (const std::int64_t axis : {0, -1}) {
    const Plan p = plan({}, FirstAxis{axis});
    CHECK(p.rows == 1);
    CHECK(p.row_length == 1);
    CHECK(p.row_shape(true).empty());
    CHECK(p.normalized_shape().empty());
  }
  CHECK(error_of({}, FirstAxis{1}) == "x.npy: () has 0 dimensions, found axis 1, expected -1 to 0");
}

TEST_CASE("the result's dtype follows the input's, integers give float64", "[plan]") {
  const auto out = [](DType in) { return lnorm::make_plan({"x", in, {2}}, {}).out; };
  CHECK(out(DType::float16) == DType::float16);
  CHECK(out(DType::float32) == DType::float32);
  CHECK(out(DType::int8) == DType::float64);
  CHECK(out(DType::boolean) == DType::float64);
  CHECK(lnorm::make_plan({"x", DType::int8, {2}}, {}, DType::float16).out == DType::float16);
  CHECK_THROWS_AS(lnorm::make_plan({"x", DType::int8, {2}}, {}, DType::int8), lnorm::Error);
}

TEST_CASE("options that do not fit the tensor are refused in its words", "[plan]") {
  CHECK(error_of({2, 3}, FirstAxis{2}) ==
        "x.npy: (2, 3) has 2 dimensions, found axis 2, expected -2 to 1");
  CHECK(error_of({5, 768, 3}, NormalizedShape{{768}}) ==
        "x.npy: normalized shape (768) does not match the last 1 dimension of shape (5, 768, 3) | "
        "(768) is axis 1 -> 1");
  CHECK(error_of({5, 6, 3}, NormalizedShape{{5, 6}}) ==
        "x.npy: normalized shape (5, 6) does not match the last 2 dimensions of shape (5, 6, 3) | "
        "(5, 6) are axes 0,1 -> 0,1");
  CHECK(error_of({3}, NormalizedShape{{2, 3}}) ==
        "x.npy: normalized shape (2, 3) does not match the last 2 dimensions of shape (3)");
  CHECK(error_of({2, 3}, AxisList{{1, -1}}) ==
        "x.npy: (2, 3) has 2 dimensions, found axis 1 twice in the list of axes");
  CHECK(error_of({2, 3}, FirstAxis{}, {.ddof = 3}) ==
        "x.npy: ddof is 3, but a row has only 3 elements; expected ddof below that");
  CHECK(error_of({2, 3}, FirstAxis{}, {.ddof = -1}) == "ddof is -1, expected 0 or more");
  CHECK(error_of({2, 3}, FirstAxis{}, {.eps = -1e-5}) ==
        "eps is -1e-05, expected a finite number, 0 or more");
  CHECK(error_of({2, 3}, FirstAxis{}, {.eps = std::numeric_limits<double>::infinity()}) ==
        "eps is inf, expected a finite number, 0 or more");
  CHECK(error_of({0, 1LL << 40, 1LL << 40}, FirstAxis{1}).find("2^63") != std::string::npos);
}

TEST_CASE("any axes can be normalized, in the input's order", "[plan]") {
  const Plan p = plan({2, 3, 4, 5}, AxisList{{-1, 1}});
  CHECK(p.axes == std::vector<std::size_t>{1, 3});
  CHECK(p.rows == 8);
  CHECK(p.row_length == 15);
  CHECK(p.normalized_shape() == Shape{3, 5});
  CHECK(p.row_shape(true) == Shape{2, 1, 4, 1});
  CHECK(p.row_shape(false) == Shape{2, 4});
  CHECK(p.rows_in_order());
  CHECK(plan({}, AxisList{{0}}).axes.empty());
}

TEST_CASE("blocks that fit follow each other, so that a pipe will do", "[plan]") {
  const Plan small = plan({100, 96, 14, 14}, AxisList{{1}});
  CHECK_FALSE(small.in_view.is_contiguous());
  CHECK(small.route.rows % 196 == 0);
  CHECK_FALSE(small.route.in.needs_random_access);
  CHECK_FALSE(small.route.out.needs_random_access);
  const Plan large = plan({4, 96, 1000, 1000}, AxisList{{1}});
  CHECK(large.route.in.needs_random_access);
  CHECK_FALSE(large.route.in_parts);
  CHECK(plan({200000, 768}, AxisList{{0}}).route.in_parts);
}

TEST_CASE("the route says why rows do not go in blocks as they lie", "[plan]") {
  CHECK(plan({1000, 768}).route.reason.empty());
  const Plan parts = plan({3, 1 << 22});
  CHECK(parts.route.in_parts);
  CHECK(parts.route.reason == "a row of 16 MiB is more than should be held");
  const auto whole = [](const Shape& shape, const NormalizedAxes& axes) {
    return lnorm::make_plan({"x.npy", DType::float32, shape}, {axes, {}, false}, {},
                            {.whole = true});
  };
  const Plan held = whole({3, 1 << 22}, FirstAxis{});
  CHECK_FALSE(held.route.in_parts);
  CHECK_FALSE(held.route.in.uses_temporary_file(false));
  CHECK(held.route.reason.empty());
  const Plan columns = whole({200000, 768}, AxisList{{0}});
  CHECK_FALSE(columns.route.in_parts);
  CHECK(columns.route.in.repacks_rows);
  CHECK(columns.route.out.repacks_rows);
  CHECK(columns.route.reason == "rows lie among each other, and too few of them can be held");
}

TEST_CASE("rows of Fortran order are numbered as they lie, unless C order is asked for", "[plan]") {
  lnorm::TensorInfo x{"x.npy", DType::float32, {8, 4000, 768}};
  x.order = lnorm::MemoryOrder::fortran;
  const Plan any = lnorm::make_plan(x, {});
  CHECK_FALSE(any.rows_in_order());
  CHECK_FALSE(any.route.in.transposes);
  CHECK(lnorm::mean_run_length(any) >= 32);
  const Plan ordered = lnorm::make_plan(x, {}, {}, {.ordered = true});
  CHECK(ordered.rows_in_order());
  CHECK(ordered.route.in.transposes);
  x.shape = {4000, 768};
  CHECK(lnorm::make_plan(x, {}).rows_in_order());
}

TEST_CASE("tiles that are held have long runs, and a few of their rows go at a time", "[plan]") {
  lnorm::TensorInfo x{"x.npy", DType::float32, {8192, 8192}};
  x.order = lnorm::MemoryOrder::fortran;
  const Plan square = lnorm::make_plan(x, {}, {}, {.in_tiles = true});
  CHECK_FALSE(square.route.in_parts);
  CHECK_FALSE(square.route.in.transposes);
  CHECK(square.route.rows == 1024);
  CHECK(square.route.block_rows == 16);
  CHECK_FALSE(square.route.out.holds_tiles);
  CHECK(lnorm::mean_run_length(square) == 1024);
  x.shape = {16, 32, 32, 64, 64};
  const Plan five = lnorm::make_plan(x, {AxisList{{1, 3}}, {}, false}, {}, {.in_tiles = true});
  CHECK(five.route.rows == 2048);
  CHECK(five.route.out.holds_tiles);
  CHECK(lnorm::mean_run_length(five) == 1024);
  // A pipe passes by in images.
  x = {"x.npy", DType::float32, {64, 256, 64, 64}};
  const Plan images = lnorm::make_plan(x, {AxisList{{1}}, {}, false}, {}, {.in_tiles = true});
  CHECK(images.route.rows == 64 * 64);
  CHECK_FALSE(images.route.in.needs_random_access);
  CHECK_FALSE(images.route.out.needs_random_access);
  CHECK(lnorm::make_plan({"x.npy", DType::float32, {1000, 768}}, {}, {}, {.in_tiles = true})
            .route.rows == plan({1000, 768}).route.rows);
}

TEST_CASE("extents that no memory could have are nothing, beside one of 0", "[plan]") {
  lnorm::TensorInfo x{"x.npy", DType::float32, {0, 1LL << 40, 1LL << 40}};
  x.order = lnorm::MemoryOrder::fortran;
  CHECK(lnorm::make_plan(x, {}).rows == 0);
  CHECK(plan({0, 1LL << 62}).route.bytes == 0);
}
