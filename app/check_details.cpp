#include "check_details.hpp"

#include <optional>

#include "compare_criteria.hpp"
#include "lnorm/layout/row_slice.hpp"
#include "lnorm/layout/spooled_tensor.hpp"

namespace lnorm::app {

bool wants_details(const Arguments& arguments) {
  return arguments.worst || arguments.histogram || arguments.rows_out ||
         !arguments.page.path.empty();
}

Comparison compare_with_exact(const Arguments& arguments, TensorSource& x, TensorSource& actual,
                              const Plan& plan, const CheckInputs& inputs,
                              const RunOptions& options) {
  TensorInfo result = plan.result();
  result.name = "the exact result";
  TensorSpool spool(result);
  LentSource source(x);
  const Backend& backend = find_backend(arguments.normalization.kernel);
  run(source, plan, normalization(backend, inputs.given, inputs.affine, plan.formula), {}, &spool,
      options);
  ListLimits limits{0, arguments.worst.value_or(5)};
  limits.rows = arguments.rows_out.has_value();
  if (!arguments.page.path.empty()) limits.map.emplace();
  const auto exact = grouped_as(spool.source(), x.info());
  std::optional<Axes> row_axes;
  if (arguments.axes) row_axes = plan.axes;
  return Comparer().compare(actual, *exact, criteria_of(arguments, nullptr, plan.out, plan.out),
                            limits, options, row_axes, inputs.mask);
}

}  // namespace lnorm::app
