#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/tensor_set.hpp"

namespace lnorm {

namespace {

struct TypeCode {
  std::string_view code;
  DType dtype;
};

constexpr std::array kTypeCodes{
    TypeCode{"b1", DType::boolean}, TypeCode{"i1", DType::int8},    TypeCode{"i2", DType::int16},
    TypeCode{"i4", DType::int32},   TypeCode{"i8", DType::int64},   TypeCode{"u1", DType::uint8},
    TypeCode{"u2", DType::uint16},  TypeCode{"u4", DType::uint32},  TypeCode{"u8", DType::uint64},
    TypeCode{"f2", DType::float16}, TypeCode{"f4", DType::float32}, TypeCode{"f8", DType::float64},
};

// What ml_dtypes writes for the dtypes that it adds: bytes without a meaning to NumPy. Or their names.
constexpr std::array kMeaninglessCodes{
    TypeCode{"V2", DType::bfloat16},
    TypeCode{"V1", DType::float8_e4m3fn},
    TypeCode{"V1", DType::float8_e5m2},
};

bool is_meaningless(const TypeCode& entry, std::string_view descr, std::string_view code) {
  return (code == entry.code && !descr.starts_with('>')) || descr == name(entry.dtype);
}

constexpr std::string_view kSupported = "bool, int8 to int64, uint8 to uint64, float16 to float64";

// What a type code that is not read would be.
std::string_view unsupported_type(std::string_view code) {
  if (code == "f12" || code == "f16") return "long double";
  if (code.starts_with('O')) return "object (a pickle, never executed)";
  if (code.starts_with('c')) return "complex";
  if (code.starts_with('S') || code.starts_with('U') || code.starts_with('a')) return "strings";
  if (code.starts_with('M') || code.starts_with('m')) return "dates";
  if (code.starts_with('V')) return "raw bytes (void)";
  return "not a known type";
}

// The small part of Python's grammar that a header is made of, token by token.
class DictParser {
 public:
  DictParser(const std::string& name, std::string_view text, std::size_t at, bool python2_longs,
             std::optional<DType> as)
      : text_(text), at_(at), python2_longs_(python2_longs), as_(as) {
    info_.name = name;
  }

  TensorInfo parse() {
    constexpr std::array<std::string_view, 3> kKeys{"descr", "fortran_order", "shape"};
    std::array<bool, kKeys.size()> seen{};
    expect('{', "a Python dict");
    while (!accept('}')) {
      const std::size_t key_position = position_;
      const std::string_view key = string("a key");
      const auto which =
          static_cast<std::size_t>(std::find(kKeys.begin(), kKeys.end(), key) - kKeys.begin());
      if (which == kKeys.size()) {
        fail_at(key_position, concat("key '", printable(key), "' is unknown, expected ",
                                     "'descr', 'fortran_order' and 'shape'"));
      }
      if (seen[which]) fail_at(key_position, concat("'", key, "' is there twice"));
      seen[which] = true;
      expect(':', "':' after the key");
      if (key == "descr") parse_descr();
      if (key == "fortran_order") parse_order();
      if (key == "shape") parse_shape();
      if (accept(',')) continue;
      expect('}', "',' or '}'");
      break;
    }
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      if (!seen[i]) fail(concat("the dict ends without the key '", kKeys[i], "'"));
    }
    skip_blanks();
    if (position_ != text_.size()) fail(concat("found ", found(), " after the dict"));
    return info_;
  }

 private:
  std::string message(std::size_t position, std::string_view what) const {
    return concat(printable(info_.name), ": npy header, byte ", at_ + position, ": ", what);
  }
  [[noreturn]] void fail_at(std::size_t position, std::string_view what) const {
    throw Error(message(position, what));
  }
  [[noreturn]] void fail_dtype(std::size_t position, std::string dtype, std::string_view what,
                               std::string hint = {}) const {
    throw UnsupportedDType(std::move(dtype), message(position, what), std::move(hint));
  }
  [[noreturn]] void fail(std::string_view what) const { fail_at(position_, what); }

  std::string found() const {
    if (position_ >= text_.size()) return "the end of the header";
    return concat("'", printable(text_.substr(position_, 12)), "'");
  }

  void skip_blanks() {
    position_ = std::min(text_.find_first_not_of(" \t\r\n\f", position_), text_.size());
  }

  bool accept(char c) {
    skip_blanks();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(char c, std::string_view what) {
    if (!accept(c)) fail(concat("found ", found(), ", expected ", what));
  }

  bool accept_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }

  std::string_view string(std::string_view what) {
    skip_blanks();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') fail(concat("found ", found(), ", expected ", what));
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) fail("the string does not end");
    const std::string_view content = text_.substr(position_ + 1, end - position_ - 1);
    if (content.find('\\') != std::string_view::npos) fail("found an escape in a string");
    position_ = end + 1;
    return content;
  }

  void parse_descr() {
    skip_blanks();
    const std::size_t start = position_;
    if (position_ < text_.size() && (text_[position_] == '[' || text_[position_] == '(')) {
      fail_dtype(start, "structured", concat("dtype is structured, expected one of ", kSupported));
    }
    const std::string_view descr = string("a dtype, such as '<f4'");
    const bool has_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) != descr.npos;
    const std::string_view code = descr.substr(has_order ? 1 : 0);
    const auto* entry = std::find_if(kTypeCodes.begin(), kTypeCodes.end(),
                                     [&](const TypeCode& t) { return t.code == code; });
    const auto may_be = [&](const TypeCode& t) { return is_meaningless(t, descr, code); };
    const auto* const first =
        std::find_if(kMeaninglessCodes.begin(), kMeaninglessCodes.end(), may_be);
    if (first != kMeaninglessCodes.end()) {
      entry = std::find_if(first, kMeaninglessCodes.end(),
                           [&](const TypeCode& t) { return may_be(t) && t.dtype == as_; });
      if (entry == kMeaninglessCodes.end()) {
        fail_dtype(
            start, std::string(descr),
            concat("dtype '", descr, "' is ", item_size(first->dtype) == 1 ? "a byte" : "two bytes",
                   " of no known meaning, perhaps ", name(first->dtype)),
            concat("--as ", name(first->dtype), " reads them so"));
      }
    } else if (entry == kTypeCodes.end()) {
      const std::string_view what = unsupported_type(code);
      fail_dtype(
          start, std::string(what.substr(0, what.find(" ("))),
          concat("dtype '", printable(descr), "' is ", what, ", expected one of ", kSupported));
    }
    info_.dtype = entry->dtype;
    // '=' and no mark would be the writer's own order, which nearly always is this one.
    info_.byte_order = descr.starts_with('>') ? std::endian::big : std::endian::little;
  }

  void parse_order() {
    skip_blanks();
    if (accept_word("True")) {
      info_.order = MemoryOrder::fortran;
    } else if (!accept_word("False")) {
      fail(concat("fortran_order is ", found(), ", expected True or False"));
    }
  }

  void parse_shape() {
    const auto shape_form = "a tuple of sizes, such as (2, 3) or (6,)";
    Shape& shape = info_.shape;
    expect('(', shape_form);
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail(concat("found ", found(), ", expected ',' or ')'"));
      if (shape.size() == kMaxRank) {
        fail(concat("the shape has more than ", kMaxRank, " dimensions"));
      }
      shape.push_back(parse_extent());
      comma = accept(',');
    }
    if (shape.size() == 1 && !comma) {
      fail(concat("the shape is a number, expected ", shape_form));
    }
  }

  std::int64_t parse_extent() {
    skip_blanks();
    const std::size_t start = position_;
    std::int64_t extent = 0;
    const char* const begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
    const std::string_view digits(begin, static_cast<std::size_t>(end - begin));
    if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) {
      fail(concat("found ", found(), ", expected the size of a dimension"));
    }
    if (digits[0] == '-') fail(concat("size ", printable(digits), " is negative"));
    if (error != std::errc{}) {
      fail_at(start, concat("size ", digits.substr(0, 40), " is more than 2^63 - 1"));
    }
    position_ += digits.size();
    if (python2_longs_ && position_ < text_.size() && text_[position_] == 'L') ++position_;
    return extent;
  }

  TensorInfo info_;
  std::string_view text_;
  std::size_t at_;
  bool python2_longs_;
  std::optional<DType> as_;
  std::size_t position_ = 0;
};

}  // namespace

TensorInfo parse_npy_dict(const std::string& name, std::string_view dict, std::size_t at,
                          bool python2_longs, std::optional<DType> as) {
  return DictParser(name, dict, at, python2_longs, as).parse();
}

bool is_npy_dtype(DType dtype) noexcept {
  return std::any_of(kTypeCodes.begin(), kTypeCodes.end(),
                     [=](const TypeCode& t) { return t.dtype == dtype; });
}

std::string format_npy_header(const TensorInfo& info) {
  const auto is_it = [&](const TypeCode& t) { return t.dtype == info.dtype; };
  const auto* entry = std::find_if(kTypeCodes.begin(), kTypeCodes.end(), is_it);
  if (!is_npy_dtype(info.dtype))
    entry = std::find_if(kMeaninglessCodes.begin(), kMeaninglessCodes.end(), is_it);
  const char order = item_size(info.dtype) == 1 ? '|' : '<';
  const std::string tuple =
      info.shape.size() == 1 ? concat('(', info.shape[0], ",)") : to_string(info.shape);
  std::string dict = concat("{'descr': '", order, entry->code,
                            "', 'fortran_order': False, 'shape': ", tuple, ", }");
  // NumPy leaves room for the first extent to grow to 21 digits in place.
  constexpr std::size_t kGrowthDigits = 21;
  if (!info.shape.empty()) {
    dict.append(kGrowthDigits - std::to_string(info.shape[0]).size(), ' ');
  }
  constexpr std::size_t kPrefix = 10;
  constexpr std::size_t kAlignment = 64;
  dict.append(kAlignment - (kPrefix + dict.size() + 1) % kAlignment, ' ');
  dict += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace lnorm
