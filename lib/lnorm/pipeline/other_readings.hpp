#pragma once

#include <optional>
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
  Shape shape = {};  // of the tensor, with an axis of groups if they are of groups
};

// Each other single axis, each other set of trailing ones. has_affine: whether there is a weight or a bias, which keeps its axes.
std::vector<OtherAxes> other_axes(const Plan& plan, bool has_affine);

// How a kernel may have read its tensors, where no wrong kernel on the rows of the plan gives the output. Looks at some elements of the
// sample; nothing if no reading explains all of them. The first of these that does:
// - normalization over each other single axis, each other set of trailing ones; not of more than 2^22 elements
// - x is read, or y written, in another memory order, as where a transposed tensor is taken for a contiguous one: tensors of up to
//   four axes and 2^22 elements, which are held
// - x is the norm of the output
// - each row is the norm of another one: in tensors of up to 2^26 elements
// - the channels along axis 1 are in another number of groups: in tensors of up to 2^22 elements
// - another weight or bias, by least squares over at least four elements of two rows; over eight where it is another in less than nine
//   of ten. Where none is asked for, along any one axis as well
// plan: of x, which has random access. is_whole: it has all rows, with one weight a normalized element: else only other groups
// and another weight are tried.
std::optional<FormulaFit> explain_by_other_reading(TensorSource& x, const Plan& plan,
                                                   const Sample& sample,
                                                   const KernelContext& context, bool is_whole,
                                                   const ChooseKernel& choose, int threads);

}  // namespace lnorm
