#pragma once

#include <cstddef>

#include "lnorm/io/tensor_source.hpp"
#include "lnorm/measure/comparison.hpp"
#include "lnorm/pipeline/blocks.hpp"

namespace lnorm {

// Walks both tensors together, in fixed memory, blocks of them on several threads. Keeps the first
// max_mismatches pairs that differ. Where the shapes differ, nothing is read. Throws Error.
Comparison compare(TensorSource& actual, TensorSource& expected, const Tolerance& tolerance,
                   std::size_t max_mismatches, const RunOptions& options = {});

}  // namespace lnorm
