#include "lnorm/report/numbers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string_view>

#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_number.hpp"

namespace lnorm {

namespace {

// A view of the buffer, or of a word.
template <class T>
std::string_view shortest(T value, double as_double, std::span<char, kJsonNumberRoom> buffer) {
  if (std::isnan(as_double)) return "nan";
  if (std::isinf(as_double)) return as_double < 0 ? "-inf" : "inf";
  std::string_view text = json_number(value, buffer);
  if (text.ends_with(".0")) text.remove_suffix(2);
  return text;
}

std::string to_text(double value, std::chars_format format, int precision) {
  std::array<char, 400> buffer;
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, precision);
  return {buffer.data(), result.ptr};
}

}  // namespace

std::string axes_text(const Axes& axes) {
  if (axes.empty()) return "no axes";
  return (axes.size() == 1 ? "axis " : "axes ") + listed(axes, " and ");
}

std::string normalized_text(const TensorInfo& x, const Axes& axes) {
  if (!x.split) return concat("normalized over ", axes_text(axes));
  return concat("normalized in ", counted(x.shape[*x.split], "group"), " of axis ", *x.split);
}

std::string tensor_text(const TensorInfo& x) {
  return concat(printable(x.name), ": ", name(x.dtype), ", shape ", to_string(file_shape(x)));
}

std::string index_text(std::int64_t number, const Shape& shape) {
  return shape.size() < 2 ? std::to_string(number) : to_string(index_of(number, shape));
}

std::string rows_text(const RowSlice& slice) {
  const Shape rows = row_shape(slice.shape, slice.axes);
  const std::int64_t all = element_count(rows);
  if (slice.count == 0) return concat("none of ", counted(all, "row"));
  const std::string first = row_name(slice.first, rows);
  if (slice.count == 1) return concat("row ", first, " of ", all);
  return concat("rows ", first, " to ", row_name(slice.first + slice.count - 1, rows), " of ", all);
}

void append_value(double value, std::string& text) {
  char buffer[kJsonNumberRoom];
  text += shortest(value, value, buffer);
}

std::string value_text(double value) {
  std::string text;
  append_value(value, text);
  return text;
}

std::string value_text(Number value, DType dtype) {
  if (is_floating(dtype)) {
    // In its own digits 65504 of float16 would be 65500.
    if (item_size(dtype) > sizeof(float)) return value_text(value.high);
    char buffer[kJsonNumberRoom];
    return std::string(shortest(static_cast<float>(value.high), value.high, buffer));
  }
  const Int128 integer = integer_of(value);
  return integer < 0 ? std::to_string(static_cast<std::int64_t>(integer))
                     : std::to_string(static_cast<std::uint64_t>(integer));
}

std::string rounded_text(double value, int digits) {
  return to_text(value, std::chars_format::general, digits);
}

std::string fixed_text(double value, int decimals) {
  std::string text = to_text(value, std::chars_format::fixed, decimals);
  if (text.find_first_not_of("-0.") == std::string::npos) text.erase(0, text.find('0'));
  return text;
}

std::string significant_text(double value, int digits) {
  if (!std::isfinite(value)) return value_text(value);
  if (value == 0) return "0";
  std::string text = to_text(value, std::chars_format::scientific, digits - 1);
  std::size_t e = text.find('e');
  int exponent = 0;
  const std::size_t sign = text[e + 1] == '+' ? 1 : 0;  // which from_chars does not take
  std::from_chars(text.data() + e + 1 + sign, text.data() + text.size(), exponent);
  constexpr int kWhole = 6;  // digits before the point that are always shown
  if (exponent >= -4 && (exponent < std::max(digits, kWhole) || std::fabs(value) < 999999.5)) {
    return to_text(value, std::chars_format::fixed, std::max(0, digits - 1 - exponent));
  }
  if (digits > 1) {
    const std::size_t last = text.find_last_not_of('0', e - 1);
    const std::size_t end = text[last] == '.' ? last : last + 1;
    text.erase(end, e - end);
  }
  return text;
}

std::string percentage_text(std::int64_t part, std::int64_t whole) {
  if (part == 0) return "0%";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (percent < 0.1) return rounded_text(percent, 1) + "%";
  if (percent >= 99.95 && part < whole) return "over 99.9%";
  const double tenths = std::round(percent * 10) / 10;
  return value_text(tenths) + "%";
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (size >= 1023.5) {  // which would be shown as 1024
    size /= 1024;
    ++unit;
  }
  return concat(significant_text(size, 3), ' ', kUnits[unit]);
}

std::string_view top_words(TopBy by) {
  constexpr std::string_view kWords[] = {"largest |mean|",    "largest variance",
                                         "smallest variance", "largest |x|",
                                         "most zeros",        "most NaN and infinity"};
  return kWords[static_cast<std::size_t>(by)];
}

std::string top_text(const Top& top, std::string_view noun, std::int64_t of) {
  const std::int64_t count = std::min(static_cast<std::int64_t>(top.most), of);
  return concat("the ", counted(count, noun), " of the ", top_words(top.by));
}

std::string capitalized(std::string label) {
  label[0] = static_cast<char>(label[0] - 'a' + 'A');
  return label;
}

std::string variances_text(std::int64_t ddof) {
  return concat(ddof == 0   ? "biased "
                : ddof == 1 ? "unbiased "
                            : "",
                "variances (ddof ", ddof, ")");
}

std::vector<std::string> rounded_steps(bool sum, const Rounding& rounding) {
  std::vector<std::string> steps;
  if (sum) steps.emplace_back("sum");
  if (rounding.xhat) steps.emplace_back("xhat");
  if (rounding.product) steps.emplace_back("product");
  return steps;
}

}  // namespace lnorm
