#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/shape.hpp"

namespace lnorm {

// What torch.set_printoptions sets. Negative numbers, for most of which torch fails, count as 0.
struct PrintOptions {
  int precision = 4;              // digits after the point
  std::int64_t threshold = 1000;  // a tensor of more elements is summarized,
  std::int64_t edgeitems = 3;     // to this many at either end of every axis
  std::int64_t linewidth = 80;
  enum class SciMode { automatic, on, off } sci_mode = SciMode::automatic;
};

// Prints a tensor as PyTorch's str(tensor) does, to the character. The tensor streams by in C order
// and only the elements that will be shown are kept.
//
// Where PyTorch's releases differ, this is the newer ones' text: columns are as wide as the
// notation that sci_mode forces needs, and with edgeitems 0 a summary is "tensor([...])".
class TorchText {
 public:
  // Throws Error if the shape has more than 2^63 - 1 elements.
  TorchText(DType dtype, Shape shape, PrintOptions options = {});

  // The next elements in C order, as native-endian elements of the dtype; bytes.size() is a
  // multiple of the item size. Ranges that are not shown cost nothing. Elements beyond the last are
  // ignored.
  void add(std::span<const std::byte> bytes);

  // Of the next elements, how many will not be shown, and may be passed over by skip; how many will
  // be after those.
  std::int64_t unshown() const noexcept { return run_begin_ - position_; }
  std::int64_t shown() const noexcept { return run_end_ - run_begin_; }
  void skip(std::int64_t elements) noexcept { position_ += elements; }

  // The text, "tensor([[...]])" without a newline at the end. All elements must have been added.
  std::string str() const;

 private:
  class Elements;

  bool is_cut(std::int64_t extent) const;
  void find_run(std::int64_t position);
  void print_axis(std::size_t axis, Elements& elements, std::string& out) const;
  void print_suffixes(std::string& out) const;

  DType dtype_;
  Shape shape_;
  PrintOptions options_;
  std::int64_t count_;
  std::int64_t edge_ = std::numeric_limits<std::int64_t>::max();  // edgeitems, in a summary
  std::int64_t position_ = 0;                                     // of the next element added
  std::int64_t run_begin_;                                        // of the next shown elements
  std::int64_t run_end_;
  std::vector<std::byte> shown_;
};

}  // namespace lnorm
