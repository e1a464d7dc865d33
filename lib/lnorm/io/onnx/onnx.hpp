#pragma once

#include <memory>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/tensor_set.hpp"

namespace lnorm {

// The tensor of an ONNX TensorProto, as a model's test data has it (test_data_set_0/input_0.pb), and its name.
// Nothing in a file says that it is one. Elements in raw_data are read from the file where that has random access;
// others are held. Throws Error, UnsupportedDType for elements that lnorm does not have, unless the message is well
// formed and has exactly the elements that its dims ask for.
// [ONNX, onnx.proto, TensorProto]
std::unique_ptr<TensorSet> open_onnx(std::unique_ptr<ByteSource> bytes);

}  // namespace lnorm
