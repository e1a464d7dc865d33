#pragma once

#include <cstddef>
#include <vector>

#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

// Axes by their numbers, in ascending order.
using Axes = std::vector<std::size_t>;

// The normalized axes of x; a tensor without dimensions has none. Throws Error, in the words of the command
// line, if x does not have them.
Axes resolve_axes(const TensorInfo& x, const NormalizedAxes& axes);

// The other axes, along which rows are numbered.
Axes kept_axes(const Shape& shape, const Axes& normalized);

Shape extents(const Shape& shape, const Axes& axes);

// The shape of what has one number a row: without the normalized axes, or with 1 in their place.
Shape row_shape(const Shape& shape, const Axes& normalized, bool keepdim = false);

}  // namespace lnorm
