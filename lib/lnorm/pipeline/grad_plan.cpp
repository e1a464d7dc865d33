#include "lnorm/pipeline/grad_plan.hpp"

#include <cstdint>
#include <string_view>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// Whether the elements lie in another order than C's.
bool is_transposed(const TensorInfo& tensor) {
  return tensor.order == MemoryOrder::fortran && tensor.shape.size() > 1 &&
         element_count(tensor.shape) > 0;
}

// The layout with each number held once.
AffineLayout without_copies(AffineLayout layout) {
  if (layout.copies == 1) return layout;
  layout.repeat = layout.copies;
  for (AffineLayout::RowAxis& axis : layout.rows) axis.stride /= layout.copies;
  layout.copies = 1;
  return layout;
}

void add_reason(Route& route, std::string_view reason) {
  route.reason += concat(route.reason.empty() ? "" : "; ", reason);
}

}  // namespace

GradPlan make_grad_plan(const GradientInputs& inputs, const LayerNormOptions& options,
                        std::optional<DType> dtype, const RequestedGradients& requested,
                        const RowNeeds& needs) {
  TensorInfo x = grouped(inputs.x, options.axes);
  check_same_shape(grouped(inputs.dy, options.axes), x);
  const bool x_alone = is_transposed(x) && !is_transposed(inputs.dy);
  const bool dy_alone = is_transposed(inputs.dy) && !is_transposed(x);
  if (x_alone) x.order = MemoryOrder::c;
  GradPlan plan;
  plan.requested = requested;
  RowNeeds of_rows = needs;
  of_rows.bytes_beside += static_cast<std::int64_t>(item_size(inputs.dy.dtype));
  plan.rows = make_plan(x, options, dtype, of_rows);
  plan.rows.affine = without_copies(plan.rows.affine);
  plan.shares_weights = !plan.rows.affine.is_plain();
  Route& route = plan.rows.route;
  plan.dy = route.in;
  if (x_alone) route.in.transposes = true;
  if (dy_alone) plan.dy.transposes = true;
  if (x_alone || dy_alone) add_reason(route, "x and dy lie in different memory orders");
  const auto io_path_of = [&](const std::optional<TensorInfo>& saved) {
    IoPath io_path;
    if (!saved || saved->shape.empty()) return io_path;
    check_saved(*saved, x, plan.rows.axes);
    io_path.needs_random_access = !plan.rows.rows_in_order();
    io_path.transposes = is_transposed(*saved);
    return io_path;
  };
  plan.mean = io_path_of(inputs.mean);
  plan.rstd = io_path_of(inputs.rstd);
  if (requested.dweight || requested.dbias) {
    for (IoPath* io_path : {&route.in, &plan.dy, &plan.mean, &plan.rstd}) {
      io_path->needs_random_access = true;
    }
    add_reason(route, "dweight and dbias may need all rows once more");
  }
  return plan;
}

void check_saved(const TensorInfo& saved, const TensorInfo& x, const Axes& axes) {
  const Shape dropped = row_shape(x.shape, axes);
  const Shape kept = x.split ? dropped : row_shape(x.shape, axes, true);
  if (saved.shape != kept && saved.shape != dropped) {
    throw Error(concat(printable(saved.name), " has shape ", to_string(saved.shape),
                       ", expected a number for each row of ", printable(x.name), ", shape ",
                       to_string(kept), x.split ? "" : concat(" or ", to_string(dropped))));
  }
  if (!is_floating(saved.dtype)) {
    throw Error(concat(printable(saved.name), " is ", name(saved.dtype), ", expected ",
                       dtype_list(is_larger_float)));
  }
}

TensorInfo parameter_gradient(const Plan& plan, const TensorInfo* weight,
                              std::optional<DType> dtype) {
  const bool as_weight = weight != nullptr && is_floating(weight->dtype);
  return {"", dtype.value_or(as_weight ? weight->dtype : plan.out),
          weight != nullptr ? weight->shape : plan.affine_shape()};
}

}  // namespace lnorm
