#include "lnorm/io/format.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <utility>

#include "lnorm/io/gguf/gguf.hpp"
#include "lnorm/io/json/json_lines.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/onnx/onnx.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/io/safetensors/safetensors.hpp"
#include "lnorm/io/safetensors/sharded.hpp"
#include "lnorm/io/torch/torch.hpp"
#include "lnorm/io/zip/npz.hpp"
#include "lnorm/io/zip/zip_archive.hpp"

namespace lnorm {

namespace {

using Line = std::optional<std::string>;

// A format whose files say all.
template <std::unique_ptr<TensorSet> (*open)(std::unique_ptr<ByteSource>)>
std::unique_ptr<TensorSet> open_by_bytes(std::unique_ptr<ByteSource> bytes, const ReadOptions&,
                                         const Line&) {
  return open(std::move(bytes));
}

std::unique_ptr<TensorSet> open_npy_file(std::unique_ptr<ByteSource> bytes,
                                         const ReadOptions& options, const Line&) {
  return set_of(open_npy(std::move(bytes), options.as), "");
}

std::unique_ptr<TensorSink> create_npy(ByteSink& bytes, const TensorInfo& tensor,
                                       const WriteOptions&) {
  return make_npy_sink(bytes, tensor);
}

std::unique_ptr<TensorSet> open_zip(std::unique_ptr<ByteSource> bytes, const ReadOptions& options,
                                    const Line&) {
  auto archive = std::make_shared<const ZipArchive>(std::move(bytes));
  if (is_torch(*archive)) return open_torch(std::move(archive));
  return open_npz(std::move(archive), options.as);
}

std::unique_ptr<TensorSetSink> create_npz(ByteSink& bytes, const std::vector<TensorInfo>&,
                                          const WriteOptions&) {
  return make_npz_set_sink(bytes);
}

std::unique_ptr<TensorSetSink> create_safetensors(ByteSink& bytes,
                                                  const std::vector<TensorInfo>& tensors,
                                                  const WriteOptions&) {
  return make_safetensors_sink(bytes, tensors);
}

std::unique_ptr<TensorSet> open_json_file(std::unique_ptr<ByteSource> bytes,
                                          const ReadOptions& options, const Line&) {
  if (is_index_of_shards(bytes->name())) return open_shards(std::move(bytes));
  return open_json(std::move(bytes), options.in_parallel, options.as.value_or(DType::float64));
}

std::unique_ptr<TensorSink> create_json(ByteSink& bytes, const TensorInfo& tensor,
                                        const WriteOptions& options) {
  return make_json_sink(bytes, tensor, options.nan);
}

std::unique_ptr<TensorSetSink> create_json_object(ByteSink& bytes, const std::vector<TensorInfo>&,
                                                  const WriteOptions& options) {
  return make_json_object_sink(bytes, options.nan);
}

std::unique_ptr<TensorSet> open_json_line(std::unique_ptr<ByteSource> bytes,
                                          const ReadOptions& options, const Line& line) {
  return set_of(JsonLines(std::move(bytes), options.as).only(line), "");
}

std::unique_ptr<TensorSet> open_raw_file(std::unique_ptr<ByteSource> bytes,
                                         const ReadOptions& options, const Line&) {
  if (!options.as || !options.shape) bytes->fail("a raw file needs a dtype and a shape");
  TensorInfo info{bytes->name(), *options.as, *options.shape, options.byte_order};
  complete_shape(info, *bytes, options.offset);
  return set_of(open_raw(std::move(bytes), std::move(info), options.offset), "");
}

std::unique_ptr<TensorSink> create_raw(ByteSink& bytes, const TensorInfo& tensor,
                                       const WriteOptions&) {
  return make_raw_sink(bytes, "", tensor);
}

std::unique_ptr<TensorSink> create_text(ByteSink& bytes, const TensorInfo& tensor,
                                        const WriteOptions& options) {
  return options.text(bytes, tensor);
}

// clang-format off
constexpr std::array kFormats{
    FormatRow{Format::npy, "npy", "", ".npy", "", true, true,
              open_npy_file, create_npy, nullptr},
    FormatRow{Format::npz, "npz", "pt", ".npz", ".pt .pth", true, false,
              open_zip, nullptr, create_npz},
    FormatRow{Format::safetensors, "safetensors", "", ".safetensors", "", true, true,
              open_by_bytes<open_safetensors>, nullptr, create_safetensors},
    FormatRow{Format::json, "json", "", ".json", "", false, false,
              open_json_file, create_json, create_json_object},
    FormatRow{Format::jsonl, "jsonl", "", ".jsonl .ndjson", "", false, false,
              open_json_line, create_json, nullptr},
    FormatRow{Format::pb, "pb", "", "", ".pb", true, false,
              open_by_bytes<open_onnx>, nullptr, nullptr},
    FormatRow{Format::gguf, "gguf", "", "", ".gguf", true, false,
              open_by_bytes<open_gguf>, nullptr, nullptr},
    FormatRow{Format::raw, "raw", "", ".bin .raw", "", true, true,
              open_raw_file, create_raw, nullptr},
    FormatRow{Format::text, "text", "", ".txt", "", false, false,
              nullptr, create_text, nullptr},
};
// clang-format on

// Whether one of some extensions, with blanks between them, is this one.
bool has_extension(std::string_view extensions, std::string_view found) {
  for (std::size_t at = extensions.find(found); at != extensions.npos;
       at = extensions.find(found, at + 1)) {
    const std::size_t end = at + found.size();
    if (end == extensions.size() || extensions[end] == ' ') return true;
  }
  return false;
}

}  // namespace

std::span<const FormatRow> formats() { return kFormats; }

const FormatRow& format_row(Format format) { return kFormats[static_cast<std::size_t>(format)]; }

std::unique_ptr<TensorSink> create_tensor(Format format, ByteSink& bytes, const TensorInfo& tensor,
                                          const WriteOptions& options) {
  const FormatRow& row = format_row(format);
  if (row.create != nullptr) return row.create(bytes, tensor, options);
  const std::shared_ptr<TensorSetSink> set = row.create_set(bytes, {tensor}, options);
  return std::make_unique<FollowedSink>(set->begin(tensor), [set] { set->finish(); });
}

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
  if (found.size() < 2) return std::nullopt;
  for (const FormatRow& row : kFormats) {
    if (has_extension(row.extensions, found) || has_extension(row.read_extensions, found)) {
      return row.format;
    }
  }
  return std::nullopt;
}

}  // namespace lnorm
