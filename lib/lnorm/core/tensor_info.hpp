#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/shape.hpp"

namespace lnorm {

// Which index of a tensor goes fastest from one element to the next: the last one, or the first one.
enum class MemoryOrder { c, fortran };

// Some successive rows of a tensor that are a tensor of their own: of the shape (count, normalized extents), in C order.
struct RowSlice {
  Shape shape;  // of the whole tensor
  Axes axes;    // that are normalized there; rows are numbered along the others, in C order
  std::int64_t first = 0;
  std::int64_t count = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(shape, axes, first, count);
  }
};

// What a header says of a tensor: everything but the elements.
struct TensorInfo {
  std::string name;  // for messages: "x.npy", "model.json:weight", "standard input"
  DType dtype = DType::float64;
  Shape shape;
  std::endian byte_order = std::endian::native;
  MemoryOrder order = MemoryOrder::c;
  std::optional<RowSlice> slice = {};  // if it is one
  // The axis of shape, or of the slice's, that is seen as two, groups and what each of them has: this one and the next. The
  // file has one axis there.
  std::optional<std::size_t> split = {};

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, dtype, shape, byte_order, order, slice, split);
  }
};

}  // namespace lnorm
