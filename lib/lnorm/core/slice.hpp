#pragma once

#include <cstdint>

#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

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
