#include "lnorm/io/format.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/unsupported_format.hpp"

namespace lnorm {

namespace {

bool is_utf16_without_mark(std::string_view head) {
  return head.size() >= 4 && (head[0] == '\0') != (head[1] == '\0') &&
         (head[0] == '\0') == (head[2] == '\0') && (head[1] == '\0') == (head[3] == '\0');
}

std::string_view peek(ByteSource& source, std::size_t count) {
  const auto bytes = source.peek(count);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// u64 header length, of which no file needs the upper half, then a JSON object.
bool is_safetensors(std::string_view head) {
  return head.size() > 8 && head[8] == '{' && head.substr(4, 4) == std::string_view("\0\0\0\0", 4);
}

bool starts_json(std::string_view head) {
  if (head.starts_with(kByteOrderMark)) return true;
  return trimmed_json(head).find_first_of("[{-0123456789NIn") == 0;
}

// Which no text has, and elements alone have soon.
bool has_control_characters(std::string_view head) {
  constexpr std::string_view kOfText = "\t\n\f\r";
  return std::any_of(head.begin(), head.end(), [&](char c) {
    return static_cast<unsigned char>(c) < 0x20 && kOfText.find(c) == kOfText.npos;
  });
}

bool is_named_as_elements(std::string_view path) {
  const std::string found = extension(path);
  return found == ".bin" || found == ".raw" || found == ".dat";
}

}  // namespace

std::string extension(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos || path.find('/', dot) != std::string_view::npos) return "";
  std::string result(path.substr(dot));
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::optional<Format> format_of_extension(std::string_view path) {
  const std::string found = extension(path);
  if (found == ".npy") return Format::npy;
  if (found == ".npz" || found == ".pt" || found == ".pth") return Format::npz;
  if (found == ".safetensors") return Format::safetensors;
  if (found == ".json") return Format::json;
  if (found == ".jsonl" || found == ".ndjson") return Format::jsonl;
  if (found == ".pb") return Format::pb;
  if (found == ".txt") return Format::text;
  return std::nullopt;
}

Format detect_format(ByteSource& source) {
  constexpr std::string_view kNpyMagic = "\x93NUMPY";
  constexpr std::string_view kZipMagic = "PK\x03\x04";
  constexpr std::string_view kEmptyZipMagic = "PK\x05\x06";
  // No more than it takes: a pipe may be slow.
  std::string_view head = peek(source, 32);
  if (trimmed_json(head).empty()) head = peek(source, ByteSource::kLookAhead);
  const auto fail = [&](std::string_view what) {
    throw Error(concat(printable(source.name()), ": ", what));
  };
  if (head.empty()) fail("is empty, expected a tensor (.npy, .npz, .safetensors, .pt or JSON)");
  if (head.substr(0, kNpyMagic.size()) == kNpyMagic.substr(0, head.size())) return Format::npy;
  if (head.starts_with(kZipMagic) || head.starts_with(kEmptyZipMagic)) return Format::npz;
  const auto by_extension = format_of_extension(source.name());
  if (by_extension == Format::pb) return Format::pb;
  // Before the others: any two bytes may begin a length.
  if (!is_tfrecord(head) && is_safetensors(head)) return Format::safetensors;
  if (const auto unsupported = find_unsupported_format(head)) {
    throw Error(concat(printable(source.name()), ": is ", unsupported->what), unsupported->hint);
  }
  const bool is_binary = has_control_characters(head);
  const bool names_elements = is_named_as_elements(source.name());
  if (!names_elements && is_utf16_without_mark(head)) fail("is UTF-16 text, expected UTF-8");
  if (starts_json(head) && !(names_elements && is_binary)) {
    return by_extension == Format::jsonl ? Format::jsonl : Format::json;
  }
  if (by_extension && by_extension != Format::text) return *by_extension;
  const std::string what =
      concat(printable(source.name()),
             ": is none of .npy, .npz, .safetensors, .pt and JSON: it starts with '",
             printable(head.substr(0, 16)), "'");
  if (is_binary || names_elements) throw ElementsAlone(what);
  throw Error(what);
}

}  // namespace lnorm
