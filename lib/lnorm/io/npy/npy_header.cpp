#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/tensor_set.hpp"

namespace lnorm {

namespace {

// What ml_dtypes writes for the dtypes that it adds: bytes without a meaning to NumPy. Or their names.
bool is_meaningless(const DTypeRow& row, std::string_view descr, std::string_view code) {
  if (row.npy.empty() || is_npy_dtype(row.dtype)) return false;
  const bool is_code = code == row.npy || std::ranges::count(row.synonyms, code) > 0;
  return (is_code && !descr.starts_with('>')) || descr == row.name;
}

std::string supported() { return dtype_list(is_npy_dtype); }

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
      const std::size_t key_offset = offset_;
      const std::string_view key = string("a key");
      const auto which =
          static_cast<std::size_t>(std::find(kKeys.begin(), kKeys.end(), key) - kKeys.begin());
      if (which == kKeys.size()) {
        fail_at(key_offset, concat("key '", printable(key), "' is unknown, expected ",
                                   "'descr', 'fortran_order' and 'shape'"));
      }
      if (seen[which]) fail_at(key_offset, concat("'", key, "' is there twice"));
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
    if (offset_ != text_.size()) fail(concat("found ", found(), " after the dict"));
    return info_;
  }

 private:
  std::string message(std::size_t offset, std::string_view what) const {
    return concat(printable(info_.name), ": npy header, byte ", at_ + offset, ": ", what);
  }
  [[noreturn]] void fail_at(std::size_t offset, std::string_view what) const {
    throw Error(message(offset, what));
  }
  [[noreturn]] void fail_dtype(std::size_t offset, std::string dtype, std::string_view what,
                               Remedy remedy = {}) const {
    throw UnsupportedDType(std::move(dtype), message(offset, what), "", std::move(remedy));
  }
  [[noreturn]] void fail(std::string_view what) const { fail_at(offset_, what); }

  std::string found() const {
    if (offset_ >= text_.size()) return "the end of the header";
    return concat("'", printable(text_.substr(offset_, 12)), "'");
  }

  void skip_blanks() {
    offset_ = std::min(text_.find_first_not_of(" \t\r\n\f", offset_), text_.size());
  }

  bool accept(char c) {
    skip_blanks();
    if (offset_ == text_.size() || text_[offset_] != c) return false;
    ++offset_;
    return true;
  }

  void expect(char c, std::string_view what) {
    if (!accept(c)) fail(concat("found ", found(), ", expected ", what));
  }

  bool accept_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(offset_).starts_with(word)) return false;
    offset_ += word.size();
    return true;
  }

  std::string_view string(std::string_view what) {
    skip_blanks();
    const char quote = offset_ < text_.size() ? text_[offset_] : '\0';
    if (quote != '\'' && quote != '"') fail(concat("found ", found(), ", expected ", what));
    const std::size_t end = text_.find(quote, offset_ + 1);
    if (end == std::string_view::npos) fail("the string does not end");
    const std::string_view content = text_.substr(offset_ + 1, end - offset_ - 1);
    if (content.find('\\') != std::string_view::npos) fail("found an escape in a string");
    offset_ = end + 1;
    return content;
  }

  void parse_descr() {
    skip_blanks();
    const std::size_t start = offset_;
    if (offset_ < text_.size() && (text_[offset_] == '[' || text_[offset_] == '(')) {
      fail_dtype(start, "structured", concat("dtype is structured, expected one of ", supported()));
    }
    const std::string_view descr = string("a dtype, such as '<f4'");
    const bool has_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) != descr.npos;
    const std::string_view code = descr.substr(has_order ? 1 : 0);
    const auto may_be = [&](const DTypeRow& row) { return is_meaningless(row, descr, code); };
    const auto* entry = std::find_if(kDTypes.begin(), kDTypes.end(), may_be);
    if (entry != kDTypes.end()) {
      const DTypeRow& first = *entry;
      entry = std::find_if(entry, kDTypes.end(),
                           [&](const DTypeRow& row) { return may_be(row) && row.dtype == as_; });
      if (entry == kDTypes.end()) {
        fail_dtype(start, std::string(descr),
                   concat("dtype '", descr, "' is ", first.size == 1 ? "a byte" : "two bytes",
                          " of no known meaning, perhaps ", first.name),
                   {Remedy::Setting::dtype, std::string(first.name)});
      }
    } else if (entry = std::ranges::find_if(kDTypes,
                                            [&](const DTypeRow& row) {
                                              return is_npy_dtype(row.dtype) &&
                                                     (row.npy == code || row.name == descr);
                                            });
               entry == kDTypes.end()) {
      const std::string_view what = unsupported_type(code);
      fail_dtype(
          start, std::string(what.substr(0, what.find(" ("))),
          concat("dtype '", printable(descr), "' is ", what, ", expected one of ", supported()));
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
      if (shape.size() == kMaxDims) {
        fail(concat("the shape has more than ", kMaxDims, " dimensions"));
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
    const std::size_t start = offset_;
    std::int64_t extent = 0;
    const char* const begin = text_.data() + offset_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
    const std::string_view digits(begin, static_cast<std::size_t>(end - begin));
    if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) {
      fail(concat("found ", found(), ", expected the size of a dimension"));
    }
    if (digits[0] == '-') fail(concat("size ", printable(digits), " is negative"));
    if (error != std::errc{}) {
      fail_at(start, concat("size ", digits.substr(0, 40), " is more than 2^63 - 1"));
    }
    offset_ += digits.size();
    if (python2_longs_ && offset_ < text_.size() && text_[offset_] == 'L') ++offset_;
    return extent;
  }

  TensorInfo info_;
  std::string_view text_;
  std::size_t at_;
  bool python2_longs_;
  std::optional<DType> as_;
  std::size_t offset_ = 0;
};

}  // namespace

TensorInfo parse_npy_dict(const std::string& name, std::string_view dict, std::size_t at,
                          bool python2_longs, std::optional<DType> as) {
  return DictParser(name, dict, at, python2_longs, as).parse();
}

std::string format_npy_header(const TensorInfo& info) {
  const char order = item_size(info.dtype) == 1 ? '|' : '<';
  const std::string tuple =
      info.shape.size() == 1 ? concat('(', info.shape[0], ",)") : to_string(info.shape);
  std::string dict = concat("{'descr': '", order, dtype_row(info.dtype).npy,
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
