#pragma once

#include "arguments.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm::app {

// Throws Error if standard input is named for more than one of the tensors.
void check_inputs(const InputArguments& input, const NormalizationArguments& arguments);

// Reads --weight and --bias: a file, a member of one, JSON, or a number; as: where the file does not tell
// (ReadOptions). Throws Error.
Affine read_affine(const NormalizationArguments& arguments, std::optional<DType> as,
                   const Plan& plan);

}  // namespace lnorm::app
