#pragma once

#include <memory>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_set_sink.hpp"

namespace lnorm {

// An .npz as numpy.savez writes it, not compressed: the tensor "weight" is the member "weight.npy". In a pipe
// what is known of a member only afterwards follows it.
std::unique_ptr<TensorSetSink> make_npz_set_sink(ByteSink& bytes);

}  // namespace lnorm
