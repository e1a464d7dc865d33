#include "lnorm/io/format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/json/json_text.hpp"

namespace lnorm {

namespace {

struct Signature {
  std::string_view bytes;
  std::string_view what;
};

// What people feed by mistake.
constexpr std::array kForeign{
    Signature{"\x1f\x8b", "compressed with gzip; decompress it first (gunzip -c)"},
    Signature{"\x28\xb5\x2f\xfd", "compressed with zstd; decompress it first (zstd -dc)"},
    Signature{"\x89HDF\r\n\x1a\n", "an HDF5 file"},
    Signature{"version https://git-lfs", "a git-lfs pointer; fetch the file itself (git lfs pull)"},
    Signature{"\xff\xfe", "UTF-16 text, expected UTF-8"},
    Signature{"\xfe\xff", "UTF-16 text, expected UTF-8"},
    Signature{"\x80",
              "a Python pickle, which is never executed; save a .pt again by torch.save of PyTorch "
              "1.6 or "
              "newer, an array by numpy.save"},
    Signature{"<!", "HTML or XML, perhaps an error page of a download"},
    Signature{"<html", "HTML, perhaps an error page of a download"},
    Signature{"<?xml", "XML"},
};

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
  if (is_safetensors(head)) return Format::safetensors;
  for (const Signature& foreign : kForeign) {
    if (head.starts_with(foreign.bytes)) fail(concat("is ", foreign.what));
  }
  if (is_utf16_without_mark(head)) fail("is UTF-16 text, expected UTF-8");
  if (starts_json(head)) return by_extension == Format::jsonl ? Format::jsonl : Format::json;
  if (by_extension && by_extension != Format::text) return *by_extension;
  fail(concat("is none of .npy, .npz, .safetensors, .pt and JSON: it starts with '",
              printable(head.substr(0, 16)), "'"));
  return {};
}

}  // namespace lnorm
