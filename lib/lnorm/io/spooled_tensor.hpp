#pragma once

#include <memory>

#include "lnorm/io/tensor_source.hpp"

namespace lnorm {

// The same tensor with positions: as it is if it has them, otherwise (a pipe) read to its end into a
// temporary file without a name, in $TMPDIR or /tmp. Throws Error where that fails.
std::unique_ptr<TensorSource> with_positions(std::unique_ptr<TensorSource> source);

}  // namespace lnorm
