#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/number.hpp"

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

}  // namespace lnorm
