#pragma once

#include <bit>
#include <string>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/shape.hpp"

namespace lnorm {

// What a header says of a tensor: everything but the elements, which follow in C order.
struct TensorInfo {
  std::string name;  // for messages: "x.npy", "model.json:weight", "standard input"
  DType dtype = DType::float64;
  Shape shape;
  std::endian byte_order = std::endian::native;
};

}  // namespace lnorm
