#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lnorm/io/tensor_source.hpp"

namespace lnorm {

// Which elements of a tensor are looked at, and which are left out: those at which a mask is 0.
class Mask {
 public:
  // Reads the source, which is in C order. Keeps one bit per element. Throws Error.
  explicit Mask(TensorSource& source);

  const TensorInfo& info() const noexcept { return info_; }
  bool bit(std::int64_t position) const { return bits_[static_cast<std::size_t>(position)]; }

 private:
  TensorInfo info_;
  std::vector<bool> bits_;
};

// A RowMask reads a mask by the rows of a tensor.
class RowMask {
 public:
  // Broadcasts the mask by NumPy's rules to the shape that x has in its file, or to the tensor that x is a slice of. axes:
  // along which the rows of x go. Throws Error, naming both shapes, if the shapes do not fit.
  RowMask(std::shared_ptr<const Mask> mask, const TensorInfo& x, const Axes& axes);

  // Sets kept[i] to 1 for an element that is left, and to 0 for one that is left out, for count elements of a row from the first
  // on. Returns how many are left.
  std::int64_t fill(std::int64_t row, std::int64_t first, std::int64_t count, char* kept) const;

 private:
  // The axes along which the rows, or the elements of a row, are numbered.
  struct Along {
    Shape extents;
    Shape strides;  // in bits of the mask
  };

  std::shared_ptr<const Mask> mask_;
  std::int64_t first_row_ = 0;
  Along rows_;
  Along elements_;
};

// Returns what fill says of a whole row. If the mask is null all elements are left: then the result is empty.
std::vector<char> kept_of(const RowMask* mask, std::int64_t row, std::int64_t row_length);

// Throws Error, naming both shapes, unless the mask can be broadcast to the tensor, or to the one that it is a slice of.
void check_mask(const TensorInfo& mask, const TensorInfo& x);

}  // namespace lnorm
