#include "compare_criteria.hpp"

namespace lnorm::app {

bool has_criteria(const Arguments& arguments) {
  const Criteria& criteria = arguments.criteria;
  return arguments.tensors.contains(TensorRole::baseline) || arguments.rtol || arguments.atol ||
         criteria.bounds_elements() || criteria.max_mismatched || criteria.bounds_all_together();
}

Criteria criteria_of(const Arguments& arguments, const ToleranceOfNames* own, DType actual,
                     DType expected, std::optional<double> baseline) {
  Criteria criteria = arguments.criteria;
  criteria.baseline = baseline;
  if (own != nullptr) {
    criteria.tolerance = {own->rtol, own->atol};
  } else if (arguments.rtol || arguments.atol) {
    criteria.tolerance = {arguments.rtol.value_or(0), arguments.atol.value_or(0)};
  } else if (!criteria.bounds_elements() &&
             (criteria.max_mismatched || !criteria.bounds_all_together())) {
    criteria.tolerance = default_tolerance(actual, expected);
  }
  return criteria;
}

}  // namespace lnorm::app
