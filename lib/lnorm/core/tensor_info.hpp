#pragma once

#include <bit>
#include <string>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/shape.hpp"

namespace lnorm {

// Which index of a tensor goes fastest from one element to the next: the last one, or the first one.
enum class MemoryOrder { c, fortran };

// What a header says of a tensor: everything but the elements.
struct TensorInfo {
  std::string name;  // for messages: "x.npy", "model.json:weight", "standard input"
  DType dtype = DType::float64;
  Shape shape;
  std::endian byte_order = std::endian::native;
  MemoryOrder order = MemoryOrder::c;

  template <class Archive>
  void carry(Archive& archive) {
    archive(name, dtype, shape, byte_order, order);
  }
};

}  // namespace lnorm
