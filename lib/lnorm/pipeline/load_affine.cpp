#include "lnorm/pipeline/load_affine.hpp"

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/layout/reorder.hpp"

namespace lnorm {

void check_affine_shape(std::string_view role, const TensorInfo& term, const Plan& plan) {
  const Shape expected = plan.normalized_shape();
  if (term.shape.empty() || term.shape == expected) return;
  throw Error(concat(printable(term.name), ": ", role, " has shape ", to_string(term.shape),
                     ", but the normalized shape is ", to_string(expected)));
}

AffineTerm load_affine_term(std::string_view role, TensorSource& source, const Plan& plan,
                            bool plus_one) {
  const TensorInfo& info = source.info();
  check_affine_shape(role, info, plan);
  return {info, read_all_in_c_order(source), plus_one};
}

}  // namespace lnorm
