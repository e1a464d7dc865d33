#pragma once

#include "arguments.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/tensor_source.hpp"

namespace lnorm::app {

// The tensor that a command works on. Throws Error, too, where --as does not apply to it.
OpenedTensor open_input(const InputArguments& input);

void check_as(const TensorInfo& info, const ReadOptions& options);

}  // namespace lnorm::app
