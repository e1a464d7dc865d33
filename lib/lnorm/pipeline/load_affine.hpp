#pragma once

#include <string_view>

#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

// Reads weight or bias, as role says. It must have the plan's normalized shape or no dimensions.
// plus_one: the term is 1 + what is read. Throws Error, naming both shapes.
AffineTerm load_affine_term(std::string_view role, TensorSource& source, const Plan& plan,
                            bool plus_one);

// The check of shapes alone.
void check_affine_shape(std::string_view role, const TensorInfo& term, const Plan& plan);

}  // namespace lnorm
