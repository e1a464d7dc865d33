#pragma once

#include <memory>

#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/report/torch_text.hpp"

namespace lnorm {

// Prints the tensor as PyTorch does, with a newline at the end. Keeps only the elements that are shown, and
// needs_prescan those of a long tensor of which all are.
std::unique_ptr<TensorSink> make_text_sink(ByteSink& bytes, const TensorInfo& info,
                                           const PrintOptions& options);

}  // namespace lnorm
