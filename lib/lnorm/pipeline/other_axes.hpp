#pragma once

#include "lnorm/diagnosis/diagnosis.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

// Whether the output is what normalization over other axes gives: each other single axis, each other set of trailing
// ones. Looks at some elements of the sample. Nothing if none explains all of them; axes along which a row has more
// than 2^22 elements are not tried. plan: of x, which has random access.
std::optional<FormulaFit> explain_by_axes(TensorSource& x, const Plan& plan, const Sample& sample,
                                          const ChooseKernel& choose, int threads);

}  // namespace lnorm
