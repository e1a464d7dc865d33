#include "lnorm/report/torch_elements.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "lnorm/core/decimal.hpp"
#include "lnorm/core/non_finite.hpp"

namespace lnorm {

namespace {

template <class T>
T element_at(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
double number_at(const std::byte* bytes) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(element_at<T>(bytes));
  } else {
    return to_double(element_at<T>(bytes));
  }
}

}  // namespace

template <class T>
void TorchRange::add_floats(std::span<const std::byte> elements) {
  Sizes above = sizes_[0];
  Sizes below = sizes_[1];
  const std::byte* const end = elements.data() + elements.size();
  for (const std::byte* at = elements.data(); at != end; at += sizeof(T)) {
    const double value = number_at<T>(at);
    const double size = std::fabs(value);
    const bool is_above = value > 0 && value < kInfinity;
    const bool is_below = value < 0 && value > -kInfinity;
    above.smallest = std::min(above.smallest, is_above ? value : kInfinity);
    above.largest = std::max(above.largest, is_above ? value : 0.0);
    below.smallest = std::min(below.smallest, is_below ? size : kInfinity);
    below.largest = std::max(below.largest, is_below ? size : 0.0);
    if (integral_ && (is_above || is_below)) integral_ = value == std::trunc(value);
  }
  sizes_ = {above, below};
}

template <class T>
void TorchRange::add_integers(std::span<const std::byte> elements) {
  T least = std::numeric_limits<T>::max();
  T most = std::numeric_limits<T>::min();
  const std::byte* const end = elements.data() + elements.size();
  for (const std::byte* at = elements.data(); at != end; at += sizeof(T)) {
    const auto value = element_at<T>(at);
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (elements.empty()) return;
  least_ = std::min<Int128>(least_, least);
  most_ = std::max<Int128>(most_, most);
}

void TorchRange::add(DType dtype, std::span<const std::byte> elements) {
  if (dtype == DType::boolean) return add_integers<std::uint8_t>(elements);
  visit(dtype, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>) {
      add_integers<T>(elements);
    } else {
      add_floats<T>(elements);
    }
  });
}

void TorchRange::add(const TorchRange& other) {
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    sizes_[i].smallest = std::min(sizes_[i].smallest, other.sizes_[i].smallest);
    sizes_[i].largest = std::max(sizes_[i].largest, other.sizes_[i].largest);
  }
  integral_ = integral_ && other.integral_;
  least_ = std::min(least_, other.least_);
  most_ = std::max(most_, other.most_);
}

TorchElements::TorchElements(DType dtype, const TorchRange& range, const PrintOptions& options)
    : dtype_(dtype), precision_(std::max(options.precision, 0)) {
  if (is_floating(dtype_)) choose_notation(range, options.sci_mode);
  choose_width(range);
  constexpr std::size_t kMaxBesidesFraction = std::numeric_limits<double>::max_exponent10 + 8;
  const bool is_long = is_floating(dtype_) && notation_ != Notation::scientific;
  const std::size_t most =
      (is_long ? kMaxBesidesFraction : 32) + static_cast<std::size_t>(precision_);
  room_ = std::max(width_, most);
}

void TorchElements::choose_notation(const TorchRange& range, PrintOptions::SciMode sci_mode) {
  const double smallest = std::min(range.sizes_[0].smallest, range.sizes_[1].smallest);
  const double largest = std::max(range.sizes_[0].largest, range.sizes_[1].largest);
  if (largest == 0) return;  // PyTorch does not heed sci_mode here
  const bool scientific = sci_mode == PrintOptions::SciMode::automatic
                              ? largest / smallest > 1000 || largest > 1e8 || smallest < 1e-4
                              : sci_mode == PrintOptions::SciMode::on;
  if (scientific) {
    notation_ = Notation::scientific;
  } else if (!range.integral_) {
    notation_ = Notation::fixed;
  }
}

// Among numbers of one sign, one farther from zero has as many characters or more, but for exponents, which are longest at
// either end.
void TorchElements::choose_width(const TorchRange& range) {
  const auto take = [&](std::size_t width) { width_ = std::max(width_, width); };
  if (is_floating(dtype_)) {
    for (const double sign : {1.0, -1.0}) {
      const auto& [smallest, largest] = range.sizes_[sign > 0 ? 0 : 1];
      if (largest == 0) continue;
      take(text(sign * smallest).size());
      take(text(sign * largest).size());
    }
  } else if (range.least_ > range.most_) {
    return;
  } else if (dtype_ == DType::boolean) {
    take(range.least_ == 0 ? 5 : 4);  // False, True
  } else {
    for (const Int128 end : {range.least_, range.most_}) {
      take(end < 0 ? std::to_string(static_cast<std::int64_t>(end)).size()
                   : std::to_string(static_cast<std::uint64_t>(end)).size());
    }
  }
}

std::string TorchElements::text(double value) const {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  constexpr std::size_t kMaxBesidesFraction = std::numeric_limits<double>::max_exponent10 + 8;
  std::string text(kMaxBesidesFraction + static_cast<std::size_t>(precision_), '\0');
  const auto style =
      notation_ == Notation::scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value, style,
                                    notation_ == Notation::integral ? 0 : precision_);
  text.resize(static_cast<std::size_t>(result.ptr - text.data()));
  if (notation_ == Notation::integral) text += '.';
  return text;
}

char* TorchElements::put_padded(std::string_view text, char* to) const {
  to = std::fill_n(to, width_ - std::min(width_, text.size()), ' ');
  return std::copy(text.begin(), text.end(), to);
}

// The blanks and the sign of a number of so many characters without it.
char* TorchElements::put_sign(double value, std::size_t length, char* to) const {
  const bool negative = std::signbit(value);
  length += negative ? 1 : 0;
  to = std::fill_n(to, width_ - std::min(width_, length), ' ');
  if (negative) *to++ = '-';
  return to;
}

char* TorchElements::put_fixed(double value, char* to) const {
  const int behind_point = notation_ == Notation::integral ? 0 : precision_;
  const auto number = rounded_multiple(std::abs(value), behind_point);
  if (!number) return put_padded(text(value), to);
  const bool has_point = behind_point > 0 || notation_ == Notation::integral;
  const int digits = std::max(digits_of(*number), behind_point + 1);
  to = put_sign(value, static_cast<std::size_t>(digits) + (has_point ? 1 : 0), to);
  to = put_with_point(*number, digits, behind_point, to);
  if (notation_ == Notation::integral) *to++ = '.';
  return to;
}

char* TorchElements::put_scientific(double value, char* to) const {
  const auto number = rounded_decimal(std::abs(value), precision_ + 1);
  if (!number) return put_padded(text(value), to);
  const int exponent = number->exponent + precision_;  // of the first digit
  const int length = precision_ + (precision_ > 0 ? 2 : 1) + (std::abs(exponent) < 100 ? 4 : 5);
  to = put_sign(value, static_cast<std::size_t>(length), to);
  return put_exponent(exponent, put_with_point(number->digits, precision_ + 1, precision_, to));
}

char* TorchElements::put_float(double value, char* to) const {
  if (!std::isfinite(value)) return put_padded(text(value), to);
  if (notation_ != Notation::scientific) return put_fixed(value, to);
  return value == 0 ? put_padded(text(value), to) : put_scientific(value, to);
}

char* TorchElements::put(const std::byte* element, char* to) const {
  return visit(dtype_, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>) {
      return put_padded(*element == std::byte{0} ? "False" : "True", to);
    } else if constexpr (std::is_integral_v<T>) {
      std::array<char, 24> text;
      const char* const end =
          std::to_chars(text.data(), text.data() + text.size(), element_at<T>(element)).ptr;
      return put_padded({text.data(), static_cast<std::size_t>(end - text.data())}, to);
    } else {
      return put_float(number_at<T>(element), to);
    }
  });
}

}  // namespace lnorm
