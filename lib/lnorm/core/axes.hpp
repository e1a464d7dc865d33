#pragma once

#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

// The normalized axes of x; a tensor without dimensions has none. Those of a slice were chosen when it was cut: they
// are all but its first one. Throws Error, in the words of the command line, if x does not have them.
Axes resolve_axes(const TensorInfo& x, const NormalizedAxes& axes);

// The other axes, along which rows are numbered.
Axes kept_axes(const Shape& shape, const Axes& normalized);

Shape extents(const Shape& shape, const Axes& axes);

// The shape of what has one number a row: without the normalized axes, or with 1 in their place.
Shape row_shape(const Shape& shape, const Axes& normalized, bool keepdim = false);

// Throws Error unless a tensor has the shape of x.
void check_same_shape(const TensorInfo& tensor, const TensorInfo& x);

}  // namespace lnorm
