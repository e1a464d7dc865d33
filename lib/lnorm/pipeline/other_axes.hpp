#pragma once

#include <string>
#include <vector>

#include "lnorm/diagnosis/diagnosis.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

// Axes that a kernel may have normalized in place of those given.
struct OtherAxes {
  std::string id;
  std::string option;  // of lnorm that gives the same
  Axes axes;
};

// Each other single axis, each other set of trailing ones.
std::vector<OtherAxes> other_axes(const Shape& shape, const Axes& given);

// Whether the output is what normalization over other axes gives: each other single axis, each other set of trailing
// ones. Looks at some elements of the sample. Nothing if none explains all of them; axes along which a row has more
// than 2^22 elements are not tried. plan: of x, which has random access.
std::optional<FormulaFit> explain_by_axes(TensorSource& x, const Plan& plan, const Sample& sample,
                                          const ChooseKernel& choose, int threads);

// Whether the output is the norm of x in another memory order, as where a transposed tensor is taken for a contiguous one. Tensors of
// up to four axes and 2^22 elements, which are held.
std::optional<FormulaFit> explain_by_order(TensorSource& x, const Plan& plan, const Sample& sample,
                                           const ChooseKernel& choose, int threads);

// Whether x is the norm of the output.
std::optional<FormulaFit> explain_by_exchange(const Plan& plan, const Sample& sample,
                                              const ChooseKernel& choose);

// Whether the output has another weight or bias in nine columns of ten: those that four rows or more of the sample tell by least
// squares. has_weight, has_bias: whether one is given.
std::optional<FormulaFit> explain_by_affine(const Sample& sample, bool has_weight, bool has_bias,
                                            const ChooseKernel& choose);

}  // namespace lnorm
