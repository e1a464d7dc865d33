#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lnorm/io/tensor_source.hpp"
#include "lnorm/layout/passage.hpp"
#include "lnorm/layout/tiles.hpp"

// Tensors in another order than that of their file.
namespace lnorm {

// The same tensor in C order. Each read gathers what it asks for. A tensor in Fortran order then has
// positions; if it comes from a pipe, it goes by way of a temporary file.
std::unique_ptr<TensorSource> gathered(std::unique_ptr<TensorSource> source);

// The same tensor in C order, by the passage that was chosen for it.
std::unique_ptr<TensorSource> in_c_order(std::unique_ptr<TensorSource> source,
                                         const Passage& passage, const ForEachTile& for_each_tile);

// All elements in C order, in memory; checks that nothing follows.
std::vector<std::byte> read_all_in_c_order(TensorSource& source);

// A tensor in Fortran order, transposed into C order in a temporary file. It has two dimensions or more,
// and elements.
std::unique_ptr<TensorSource> transposed(TensorSource& source, const ForEachTile& for_each_tile);

// The rows of a view, one after another in a temporary file.
std::unique_ptr<TensorSource> lined_up(TensorSource& source, const RowView& rows,
                                       const ForEachTile& for_each_tile);

}  // namespace lnorm
