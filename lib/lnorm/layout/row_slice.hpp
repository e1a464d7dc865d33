#pragma once

#include <cstdint>
#include <memory>

#include "lnorm/core/axes.hpp"
#include "lnorm/io/tensor_source.hpp"

namespace lnorm {

// The tensor as grouped() sees it. One in Fortran order is read as gathered() reads it.
std::unique_ptr<TensorSource> grouped(std::unique_ptr<TensorSource> source,
                                      const NormalizedAxes& axes);

// Another tensor of the shape that x has in its file, as x is seen; what has another shape stays as it is.
std::unique_ptr<TensorSource> grouped_as(std::unique_ptr<TensorSource> other, const TensorInfo& x);

// Some successive rows of a tensor, one after another: a tensor of slice_info, under the same name. axes are the
// normalized ones, and rows are numbered along the others in C order. Where the source has random access, so has the slice, and no
// other row is read. Otherwise the rest is passed over; rows that lie among each other go by way of a temporary file. So do many rows in short
// runs of a file.
// Throws Error.
std::unique_ptr<TensorSource> rows_of(std::unique_ptr<TensorSource> source, const Axes& axes,
                                      std::int64_t first, std::int64_t count);

}  // namespace lnorm
