#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lnorm/io/tensor_source.hpp"

namespace lnorm {

// Which elements of a tensor are looked at, and which are left out: those at which a mask is 0.
class Mask {
 public:
  // source: the mask, in C order, which is read. A bit an element is kept. Throws Error.
  explicit Mask(TensorSource& source);

  const TensorInfo& info() const noexcept { return info_; }
  bool bit(std::int64_t position) const { return bits_[static_cast<std::size_t>(position)]; }

 private:
  TensorInfo info_;
  std::vector<bool> bits_;
};

// A mask as the rows of a tensor have it.
class RowMask {
 public:
  // The mask is broadcast to x as its file has it, or to the tensor that x is a slice of, by NumPy's rules. axes: along which
  // the rows of x go. Throws Error, naming both shapes, if it cannot be.
  RowMask(std::shared_ptr<const Mask> mask, const TensorInfo& x, const Axes& axes);

  // Says of count elements of a row, from one on, which are left: those of which kept is not 0. Returns how many these are.
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

// Of a row of so many elements; empty if mask is null: all are left.
std::vector<char> kept_of(const RowMask* mask, std::int64_t row, std::int64_t row_length);

// Throws Error, naming both shapes, unless the mask can be broadcast to the tensor, or to the one that it is a slice of.
void check_mask(const TensorInfo& mask, const TensorInfo& x);

}  // namespace lnorm
