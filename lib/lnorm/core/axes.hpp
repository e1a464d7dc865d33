#pragma once

#include <cstdint>
#include <string>

#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

// The normalized axes of x; a tensor without dimensions has none. Those of a slice were chosen when it was cut: they
// are all but its first one. Of groups they come in the order of a row's elements: the channels of a group, then the rest.
// Throws Error, in the words of the command line, if x does not have them.
Axes resolve_axes(const TensorInfo& x, const NormalizedAxes& axes);

// The axes of x, or of the tensor that it is a slice of, along which weight and bias run, in ascending order. Throws Error.
Axes resolve_affine_axes(const TensorInfo& x, const LayerNormOptions& options);

// x as groups see it, with the channel axis split into groups and channels of a group, in C order; x itself for other axes, and
// where it is seen so already. Throws Error if it has no such axis, or the groups do not divide it.
TensorInfo grouped(const TensorInfo& x, const NormalizedAxes& axes);

// Another tensor of the shape that x has in its file, as x is seen. Throws Error if its shape is another.
TensorInfo grouped_as(const TensorInfo& other, const TensorInfo& x);

// The shape that x has in its file, if it is no slice; that of a slice is its own.
Shape file_shape(const TensorInfo& x);

// Axes of x, as groups see it, in its file: the channels are one axis there.
Axes file_axes(const TensorInfo& x, const Axes& axes);

// The other axes, along which rows are numbered.
Axes kept_axes(const Shape& shape, const Axes& normalized);

Shape extents(const Shape& shape, const Axes& axes);

// The shape of what has one number a row: without the normalized axes, or with 1 in their place.
Shape row_shape(const Shape& shape, const Axes& normalized, bool keepdim = false);

// A row as people name it, by its number and, where rows have this shape of several axes, by its index: "27 (1, 11)".
std::string row_name(std::int64_t number, const Shape& rows);

// The index, along all axes, of an element of a row: both numbers count in C order.
Shape index_of_element(const Shape& shape, const Axes& normalized, std::int64_t row,
                       std::int64_t element);

// The number of a row's element in C order, whatever order the normalized axes are in.
std::int64_t column_of(const Shape& shape, const Axes& normalized, std::int64_t element);

// The index, along all axes in the file of x, of an element of a row: both numbers count in C order.
Shape index_in_file(const TensorInfo& x, const Axes& normalized, std::int64_t row,
                    std::int64_t element);

// Throws Error unless a tensor has the shape of x.
void check_same_shape(const TensorInfo& tensor, const TensorInfo& x);

// The info of rows of x, which may be a slice itself. axes: the normalized ones.
TensorInfo slice_info(const TensorInfo& x, const Axes& axes, std::int64_t first,
                      std::int64_t count);

// The info of the tensor that x is a slice of, without its memory order; x itself where it is none.
TensorInfo whole_of(const TensorInfo& x);

// How many rows the whole tensor has.
std::int64_t all_rows(const RowSlice& slice);

// Where an element at a position of the slice lies in the whole tensor, both in C order.
std::int64_t position_in_whole(const RowSlice& slice, std::int64_t position);

}  // namespace lnorm
