#include "lnorm/pipeline/grad_plan.hpp"

#include <bit>
#include <optional>

#include "lnorm/core/error.hpp"
#include "support/catch.hpp"

using lnorm::DType;
using lnorm::GradPlan;
using lnorm::make_grad_plan;
using lnorm::MemoryOrder;
using lnorm::RequestedGradients;
using lnorm::Shape;
using lnorm::TensorInfo;

namespace {

TensorInfo tensor(const char* name, Shape shape, MemoryOrder order = MemoryOrder::c,
                  DType dtype = DType::float32) {
  return {name, dtype, std::move(shape), std::endian::native, order};
}

constexpr RequestedGradients kOnlyDx{.dx = true, .dweight = false, .dbias = false};

}  // namespace

TEST_CASE("a block of a backward pass has room for x, dy and dx", "[grad]") {
  const TensorInfo x = tensor("x", {100'000, 768});
  const auto rows = [&](DType dy) {
    return make_grad_plan({x, tensor("dy", x.shape, MemoryOrder::c, dy)}, {}).rows.route.rows;
  };
  const auto forward = lnorm::make_plan(x, {}).route.rows;
  CHECK(rows(DType::float32) == forward * 2 / 3);
  CHECK(rows(DType::float64) == forward / 2);
}

TEST_CASE("what dweight and dbias are summed from is read at positions, and dx in order",
          "[grad]") {
  const lnorm::GradientInputs inputs{tensor("x", {50, 4}), tensor("dy", {50, 4}),
                                     tensor("mean", {50, 1}), tensor("rstd", {50})};
  const GradPlan in_order = make_grad_plan(inputs, {}, {}, kOnlyDx);
  for (const lnorm::IoPath& io_path :
       {in_order.rows.route.in, in_order.dy, in_order.mean, in_order.rstd}) {
    CHECK(!io_path.uses_temporary_file(false));
  }
  CHECK(in_order.rows.route.reason == "");
  for (const RequestedGradients& requested :
       {RequestedGradients{false, true, false}, {true, false, true}}) {
    const GradPlan plan = make_grad_plan(inputs, {}, {}, requested);
    for (const lnorm::IoPath& io_path : {plan.rows.route.in, plan.dy, plan.mean, plan.rstd}) {
      CHECK(io_path.uses_temporary_file(false));
      CHECK(!io_path.uses_temporary_file(true));
    }
    CHECK(!plan.rows.route.out.uses_temporary_file(false));
    CHECK(plan.rows.route.reason != "");
  }
}

TEST_CASE("of two memory orders the one that is not C's is brought there", "[grad]") {
  const auto plan = [](MemoryOrder x, MemoryOrder dy, const Shape& shape = {30, 40, 50}) {
    return make_grad_plan({tensor("x", shape, x), tensor("dy", shape, dy)}, {}, {}, kOnlyDx);
  };
  constexpr MemoryOrder kC = MemoryOrder::c;
  constexpr MemoryOrder kFortran = MemoryOrder::fortran;
  const auto transposes = [](const GradPlan& p) {
    return std::pair{p.rows.route.in.transposes, p.dy.transposes};
  };
  CHECK((transposes(plan(kC, kC)) == std::pair{false, false}));
  CHECK((transposes(plan(kFortran, kFortran)) == std::pair{false, false}));
  CHECK((transposes(plan(kFortran, kC)) == std::pair{true, false}));
  CHECK((transposes(plan(kC, kFortran)) == std::pair{false, true}));
  CHECK(plan(kFortran, kC).rows.in_view.is_contiguous());
  // Of one dimension there is one order.
  CHECK((transposes(plan(kFortran, kC, {50})) == std::pair{false, false}));
  CHECK((transposes(plan(kC, kFortran, {0, 3})) == std::pair{false, false}));
}

TEST_CASE("dweight and dbias are as the weight, or else as dx", "[grad]") {
  const TensorInfo x = tensor("x", {5, 3, 4}, MemoryOrder::c, DType::float16);
  lnorm::LayerNormOptions options;
  options.axes = lnorm::AxisList{{0, 2}};
  const lnorm::Plan plan = make_grad_plan({x, x}, options).rows;
  const auto found = [&](const TensorInfo* weight, std::optional<DType> dtype = {}) {
    const TensorInfo info = lnorm::parameter_gradient(plan, weight, dtype);
    return std::pair{info.dtype, info.shape};
  };
  const TensorInfo weight = tensor("w", {5, 4});
  const TensorInfo integers = tensor("w", {5, 4}, MemoryOrder::c, DType::int8);
  const TensorInfo number = tensor("w", {}, MemoryOrder::c, DType::float64);
  CHECK((found(nullptr) == std::pair{DType::float16, Shape{5, 4}}));
  CHECK((found(&weight) == std::pair{DType::float32, Shape{5, 4}}));
  CHECK((found(&integers) == std::pair{DType::float16, Shape{5, 4}}));
  CHECK((found(&number) == std::pair{DType::float64, Shape{}}));
  CHECK((found(&weight, DType::bfloat16) == std::pair{DType::bfloat16, Shape{5, 4}}));
}

TEST_CASE("tensors of a backward pass that do not fit together are refused", "[grad]") {
  const TensorInfo x = tensor("x", {2, 3});
  const auto plan = [&](std::optional<TensorInfo> rstd) {
    return make_grad_plan({x, tensor("dy", {2, 3}), {}, std::move(rstd)}, {});
  };
  CHECK_THROWS_WITH(make_grad_plan({x, tensor("dy", {3, 2})}, {}),
                    "dy has shape (3, 2), but x has shape (2, 3)");
  CHECK_THROWS_WITH(plan(tensor("rstd", {3})),
                    "rstd has shape (3), expected a number for each row of x, shape (2, 1) or (2)");
  CHECK_THROWS_AS(plan(tensor("rstd", {2}, MemoryOrder::c, DType::int64)), lnorm::Error);
  CHECK_NOTHROW(plan(tensor("rstd", {2, 1}, MemoryOrder::c, DType::bfloat16)));
}
