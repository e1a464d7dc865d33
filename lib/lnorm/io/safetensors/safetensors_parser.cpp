#include <simdjson.h>

#include <algorithm>
#include <array>
#include <istream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

#include "lnorm/core/error.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_slice.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/safetensors/header_text.hpp"
#include "lnorm/io/safetensors/safetensors_header.hpp"

namespace lnorm {

namespace {

using Json = nlohmann::json;

// What a header may hold at most, so that the worst of them costs less than 256 MiB.
constexpr std::size_t kMaxTensors = 1'000'000;
constexpr std::size_t kMaxExtents = 4'000'000;  // of all shapes
constexpr std::size_t kMaxMetadata = 1'000'000;
constexpr std::size_t kMaxNameBytes = std::size_t{48} << 20;  // of all names

std::string shown(std::string_view text) { return concat("'", short_name(text), "'"); }

// Takes the values as nlohmann's parser comes upon them; nothing nests but what is expected to.
class Handler {
 public:
  Handler(const std::string& file, HeaderText& text) : file_(file), text_(text) {}

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(
        concat(printable(file_), ": safetensors header, byte ", text_.offset(), ": ", what));
  }

  SafetensorsHeader take() {
    std::unordered_set<std::string_view> names(header_.tensors.size());
    for (const SafetensorsEntry& tensor : header_.tensors) {
      const std::string_view name = header_.name(tensor);
      if (!names.insert(name).second) fail(concat("tensor ", shown(name), " is there twice"));
    }
    return std::move(header_);
  }

  bool null() { fail_kind("null"); }
  bool boolean(bool) { fail_kind("a boolean"); }
  bool number_integer(std::int64_t) { fail_kind("a negative number"); }
  bool number_float(double, const std::string& text) {
    fail_kind(concat("the number ", shown(text)));
  }
  bool binary(Json::binary_t&) { fail_kind("binary data"); }

  bool number_unsigned(std::uint64_t value) {
    text_.mark();
    if (place_ != Place::list) fail_kind("a number");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(concat(of_field(), value, " is more than 2^63 - 1"));
    }
    if (list_.size() == kMaxDims) {
      fail(concat(of_tensor(), field_, " has more than ", kMaxDims,
                  field_ == "shape" ? " dimensions" : " values"));
    }
    list_.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& value) {
    text_.mark();
    if (place_ == Place::metadata) return true;
    if (place_ != Place::tensor || field_ != "dtype") fail_kind("a string");
    entry_.dtype = find_safetensors_dtype(value);
    if (entry_.dtype == nullptr) {
      fail(concat(of_tensor(), "dtype ", shown(value), " is unknown, expected one of ",
                  dtype_list(&DTypeRow::safetensors)));
    }
    return true;
  }

  bool key(std::string& name) {
    text_.mark();
    if (place_ == Place::file) {
      start_member(name);
    } else if (place_ == Place::tensor) {
      start_field(name);
    } else if (metadata_keys_.size() == kMaxMetadata) {
      fail(concat("__metadata__ has more than ", kMaxMetadata, " entries"));
    } else if (!metadata_keys_.insert(name).second) {
      fail(concat("__metadata__: key ", shown(name), " is there twice"));
    }
    key_ = name;
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::outside) {
      place_ = Place::file;
    } else if (place_ == Place::file) {
      place_ = in_metadata_ ? Place::metadata : Place::tensor;
    } else {
      fail_kind("an object");
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor) end_tensor();
    if (place_ == Place::metadata) metadata_keys_.clear();
    place_ = Place::file;
    return true;
  }

  bool start_array(std::size_t) {
    const bool expected =
        place_ == Place::tensor && (field_ == "shape" || field_ == "data_offsets");
    if (!expected) fail_kind("a list");
    place_ = Place::list;
    list_.clear();
    return true;
  }

  bool end_array() {
    place_ = Place::tensor;
    if (field_ == "shape") {
      if (header_.extents.size() + list_.size() > kMaxExtents) {
        fail(concat("the shapes have more than ", kMaxExtents, " dimensions together"));
      }
      header_.extents.insert(header_.extents.end(), list_.begin(), list_.end());
      entry_.ndim = static_cast<std::uint32_t>(list_.size());
      return true;
    }
    if (list_.size() != 2) {
      fail(concat(of_tensor(), "data_offsets has another number of values than 2"));
    }
    entry_.begin = list_[0];
    entry_.end = list_[1];
    return true;
  }

  bool parse_error(std::size_t, const std::string& last, const Json::exception&) {
    fail(concat("not valid JSON at ", shown(last)));
  }

 private:
  enum class Place { outside, file, metadata, tensor, list };

  std::string of_tensor() const { return concat("tensor ", shown(header_.name(entry_)), ": "); }
  std::string of_field() const { return concat(of_tensor(), field_, ": "); }

  [[noreturn]] void fail_kind(std::string_view found) const {
    switch (place_) {
      case Place::outside:
        fail(concat("found ", found, ", expected an object"));
      case Place::file:
        fail(in_metadata_ ? concat("__metadata__ is ", found, ", expected an object of strings")
                          : concat(of_tensor(), "is ", found,
                                   ", expected an object of dtype, shape and data_offsets"));
      case Place::metadata:
        fail(concat("__metadata__: ", shown(key_), " is ", found, ", expected a string"));
      default:
        fail(concat(of_field(), "found ", found, ", expected ",
                    field_ == "dtype"   ? "a string, such as \"F32\""
                    : field_ == "shape" ? "a list of sizes, such as [2, 3]"
                                        : "the list of two offsets"));
    }
  }

  void start_member(const std::string& name) {
    in_metadata_ = name == "__metadata__";
    if (in_metadata_) {
      if (metadata_seen_) fail("'__metadata__' is there twice");
      metadata_seen_ = true;
      return;
    }
    if (header_.tensors.size() == kMaxTensors) {
      fail(concat("more than ", kMaxTensors, " tensors"));
    }
    entry_ = {};
    if (name.size() > kMaxNameBytes - header_.names.size()) {
      fail(concat("the names have more than ", kMaxNameBytes, " bytes together"));
    }
    entry_.name_at = static_cast<std::uint32_t>(header_.names.size());
    entry_.name_size = static_cast<std::uint32_t>(name.size());
    header_.names += name;
    entry_.extents_at = static_cast<std::uint32_t>(header_.extents.size());
    fields_ = {};
  }

  void start_field(const std::string& name) {
    const auto* const field = std::find(kFields.begin(), kFields.end(), name);
    if (field == kFields.end()) {
      fail(concat(of_tensor(), "field ", shown(name),
                  " is unknown, expected dtype, shape and data_offsets"));
    }
    bool& seen = fields_[static_cast<std::size_t>(field - kFields.begin())];
    if (seen) fail(concat(of_tensor(), *field, " is there twice"));
    seen = true;
    field_ = *field;
  }

  void end_tensor() {
    for (std::size_t i = 0; i < kFields.size(); ++i) {
      if (!fields_[i]) fail(concat(of_tensor(), kFields[i], " is missing"));
    }
    const auto extents = std::span<const std::int64_t>(header_.extents).subspan(entry_.extents_at);
    const auto count = checked_product(extents);
    std::int64_t bits = 0;
    if (!count || __builtin_mul_overflow(*count, entry_.dtype->bits, &bits)) {
      fail(concat(of_tensor(), "shape ", to_string(extents), " of ", entry_.dtype->name,
                  " needs more than 2^63 - 1 bits"));
    }
    const auto offsets = [&] {
      return concat("data_offsets [", entry_.begin, ", ", entry_.end, "]");
    };
    if (entry_.begin > entry_.end) fail(concat(of_tensor(), offsets(), " end before they begin"));
    const std::int64_t bytes = bits / 8 + (bits % 8 != 0 ? 1 : 0);
    if (bits % 8 != 0 || entry_.end - entry_.begin != bytes) {
      fail(concat(of_tensor(), offsets(), " hold ", counted(entry_.end - entry_.begin, "byte"),
                  ", but shape ", to_string(extents), " of ", entry_.dtype->name, " needs ",
                  bits % 8 != 0 ? "a part of " : "", counted(bytes, "byte")));
    }
    header_.tensors.push_back(entry_);
  }

  static constexpr std::array<std::string_view, 3> kFields{"dtype", "shape", "data_offsets"};

  const std::string& file_;
  HeaderText& text_;
  Place place_ = Place::outside;
  SafetensorsHeader header_;

  // Under way.
  std::string key_;
  SafetensorsEntry entry_;
  std::array<bool, kFields.size()> fields_{};
  std::string_view field_;
  std::vector<std::int64_t> list_;

  bool in_metadata_ = false;
  bool metadata_seen_ = false;
  std::set<std::string> metadata_keys_;
};

namespace ondemand = simdjson::ondemand;

// Gives a value to the handler, which throws where one nests deeper than it may. Returns false for what no good
// header has.
bool walk(ondemand::value value, Handler& handler) {
  std::string text;
  switch (value.type()) {
    case ondemand::json_type::object:
      handler.start_object(0);
      for (ondemand::field field : value.get_object()) {
        text = std::string_view(field.unescaped_key());
        handler.key(text);
        if (!walk(field.value(), handler)) return false;
      }
      return handler.end_object();
    case ondemand::json_type::array:
      handler.start_array(0);
      for (ondemand::value element : value.get_array()) {
        if (!walk(element, handler)) return false;
      }
      return handler.end_array();
    case ondemand::json_type::string:
      text = std::string_view(value.get_string());
      return handler.string(text);
    case ondemand::json_type::number:
      return handler.number_unsigned(value.get_uint64());
    default:
      return false;
  }
}

// The header of a text that has nothing wrong with it; nothing otherwise. It is three times as fast as the parser
// that says what is wrong, and holds the text.
std::optional<SafetensorsHeader> parse_good_header(ByteSource& bytes,
                                                   const std::vector<std::byte>& text,
                                                   std::size_t size) {
  const std::string_view json = as_text(text).substr(0, size);
  const std::size_t last = json.find_last_not_of(kJsonBlanks);
  if (!json.starts_with('{') || json[last] != '}') return std::nullopt;
  const auto none = std::make_unique<HeaderText>(bytes, 0);
  Handler handler(bytes.name(), *none);
  try {
    ondemand::parser parser;
    ondemand::document document = parser.iterate(json.data(), size, text.size());
    const bool is_good = walk(document.get_value(), handler);
    const bool is_at_end = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
    if (is_good && is_at_end) return handler.take();
  } catch (const simdjson::simdjson_error&) {
  } catch (const Error&) {
  }
  return std::nullopt;
}

SafetensorsHeader parse_any_header(ByteSource& bytes, std::size_t size) {
  constexpr auto kEnd = HeaderText::traits_type::eof();
  const auto text = std::make_unique<HeaderText>(bytes, size);
  Handler handler(bytes.name(), *text);
  const auto next = [&] { return shown(std::string(1, static_cast<char>(text->sgetc()))); };
  if (text->sgetc() == kEnd) handler.fail("found no JSON, expected an object");
  // A byte order mark, which the parser would skip, is none of the format.
  if (text->sgetc() != '{') handler.fail(concat("found ", next(), ", expected '{'"));
  std::istream stream(text.get());
  Json::sax_parse(stream, &handler, Json::input_format_t::json, false);
  SafetensorsHeader header = handler.take();
  for (; text->sgetc() != kEnd; text->sbumpc()) {
    text->mark();
    // Spaces by the format; its own library reads all blanks.
    if (kJsonBlanks.find(static_cast<char>(text->sgetc())) == kJsonBlanks.npos) {
      handler.fail(concat("found ", next(), " after the object, expected blanks at most"));
    }
  }
  return header;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(ByteSource& bytes, std::size_t size) {
  // Larger ones are parsed piece by piece.
  constexpr std::size_t kMaxHeld = std::size_t{4} << 20;
  if (size > kMaxHeld) return parse_any_header(bytes, size);
  std::vector<std::byte> text;
  text.reserve(std::min(size, std::size_t{1} << 16) + simdjson::SIMDJSON_PADDING);
  bytes.read(text, size);
  const std::size_t found = text.size();
  text.resize(found + simdjson::SIMDJSON_PADDING);
  if (found == size && size > 0) {
    if (auto header = parse_good_header(bytes, text, size)) return *std::move(header);
  }
  TextBytes again(bytes.name(), std::string(as_text(std::span(text).first(found))));
  return parse_any_header(again, size);
}

}  // namespace lnorm
