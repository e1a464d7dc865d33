#pragma once

#include <memory>

#include "lnorm/io/tensor_source.hpp"
#include "lnorm/layout/tiles.hpp"

// Tensors in another order than that of their file.
namespace lnorm {

// A tensor in C order, read from one in another order. Each read gathers what it asks for. A tensor in Fortran order then has
// random access; if it comes from a pipe, it goes by way of a temporary file.
std::unique_ptr<TensorSource> gathered(std::unique_ptr<TensorSource> source);

// A tensor in Fortran order, transposed into C order in a temporary file. It has two dimensions or more,
// and elements.
std::unique_ptr<TensorSource> transposed(TensorSource& source, const ForEachTile& for_each_tile);

// Rows of a view, one after another in a temporary file: from the first on as many as info has, which is what they are
// then.
std::unique_ptr<TensorSource> lined_up(TensorSource& source, const RowView& rows,
                                       std::int64_t first, const TensorInfo& info,
                                       const ForEachTile& for_each_tile);

}  // namespace lnorm
