#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/report/torch_elements.hpp"

namespace lnorm {

// Prints a tensor as PyTorch's str(tensor) does, to the character. Either the tensor streams by in C order, only
// the elements that will be shown are kept, and str() is their text; or, of a tensor of which all is shown, the
// caller brings the elements twice: to TorchRange, and then to print.
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

  // How many of the next elements will not be shown, and may be passed over by skip; how many will
  // be after those.
  std::int64_t unshown() const noexcept { return run_begin_ - position_; }
  std::int64_t shown() const noexcept { return run_end_ - run_begin_; }
  void skip(std::int64_t elements) noexcept { position_ += elements; }

  // The text, "tensor([[...]])" without a newline at the end. All elements must have been added.
  std::string str() const;

  // Whether the tensor has elements and each of them is shown.
  bool shows_all() const noexcept;

  // The part of the text that shows elements, the first of which is the one at a position among those that are shown.
  // It lies in room, which only grows.
  std::string_view print(const TorchElements& format, std::int64_t position,
                         std::span<const std::byte> elements, std::string& buffer) const;

  // What follows the last element. column: how long the last line is so far.
  std::string end(std::size_t column) const;

 private:
  bool is_cut(std::int64_t extent) const;
  void find_run(std::int64_t position);

  DType dtype_;
  Shape shape_;
  PrintOptions options_;
  std::int64_t count_;
  std::int64_t edge_ = std::numeric_limits<std::int64_t>::max();  // edgeitems, in a summary
  Shape shown_shape_;                                             // of what is shown
  std::int64_t position_ = 0;                                     // of the next element added
  std::int64_t run_begin_;                                        // of the next shown elements
  std::int64_t run_end_;
  std::vector<std::byte> shown_;
};

}  // namespace lnorm
