#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_sink.hpp"

// Tensors as PyTorch prints them.
namespace lnorm {

// What torch.set_printoptions sets. Negative numbers, for most of which torch fails, count as 0.
struct PrintOptions {
  int precision = 4;              // digits after the point
  std::int64_t threshold = 1000;  // a tensor of more elements is summarized,
  std::int64_t edgeitems = 3;     // to this many at either end of every axis
  std::int64_t linewidth = 80;
  enum class SciMode { automatic, on, off } sci_mode = SciMode::automatic;
};

// What decides how all elements of a tensor are written: those at the ends of their range, which are the widest as well.
class TorchRange {
 public:
  // Native-endian elements of the dtype.
  void add(DType dtype, std::span<const std::byte> elements);
  void add(const TorchRange& other);

 private:
  friend class TorchElements;

  struct Sizes {  // of the floats of one sign, without it
    double smallest = kInfinity;
    double largest = 0;
  };

  template <class T>
  void add_floats(std::span<const std::byte> elements);
  template <class T>
  void add_integers(std::span<const std::byte> elements);

  // Zeros, infinities and NaNs have no say in notation and width: they may stick out.
  std::array<Sizes, 2> sizes_;  // of those above zero, and of those below
  bool integral_ = true;
  // The range of integers, and of booleans as 0 and 1; without elements least_ is above most_.
  Int128 least_ = std::numeric_limits<std::int64_t>::max();
  Int128 most_ = std::numeric_limits<std::int64_t>::min();
};

// How the elements of a tensor are written, as texts padded to one width.
class TorchElements {
 public:
  TorchElements(DType dtype, const TorchRange& range, const PrintOptions& options);

  std::size_t width() const noexcept { return width_; }

  // Room for the longest text.
  std::size_t buffer() const noexcept { return room_; }

  // Writes an element. Returns the end.
  char* put(const std::byte* element, char* to) const;

 private:
  // How all the floats of a tensor are written: 3. or 3.0000 or 3.0000e+00
  enum class Notation { integral, fixed, scientific };

  void choose_notation(const TorchRange& range, PrintOptions::SciMode sci_mode);
  void choose_width(const TorchRange& range);
  std::string text(double value) const;
  char* put_padded(std::string_view text, char* to) const;
  char* put_float(double value, char* to) const;
  char* put_fixed(double value, char* to) const;
  char* put_scientific(double value, char* to) const;
  char* put_sign(double value, std::size_t length, char* to) const;

  DType dtype_;
  int precision_;
  Notation notation_ = Notation::integral;
  std::size_t width_ = 1;
  std::size_t room_;
};

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

// Prints the tensor as PyTorch does, with a newline at the end. Keeps only the elements that are shown, and
// needs_prescan those of a long tensor of which all are.
std::unique_ptr<TensorSink> make_text_sink(ByteSink& bytes, const TensorInfo& info,
                                           const PrintOptions& options);

}  // namespace lnorm
