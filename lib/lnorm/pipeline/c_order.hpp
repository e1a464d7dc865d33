#pragma once

#include <memory>

#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/blocks.hpp"

namespace lnorm {

// The same tensor in C order, with positions unless it had C order before: each read gathers what it
// asks for. Of a pipe, by way of a temporary file.
std::unique_ptr<TensorSource> gathered(std::unique_ptr<TensorSource> source);

// The same for who reads all of it: where elements lie so far apart that gathering them would take too
// long, by way of a temporary file into which they are transposed.
std::unique_ptr<TensorSource> in_c_order(std::unique_ptr<TensorSource> source,
                                         const RunOptions& options = {});

// By way of that temporary file, whatever it costs. Of two dimensions and more, and not empty.
std::unique_ptr<TensorSource> transposed(TensorSource& source, const RunOptions& options);

}  // namespace lnorm
