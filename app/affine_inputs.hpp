#pragma once

#include "arguments.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm::app {

// Reads --weight and --bias: a file, a member of one, JSON, or a number. Throws Error.
Affine read_affine(const ApplyArguments& arguments, const Plan& plan);

}  // namespace lnorm::app
