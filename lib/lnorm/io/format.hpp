#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/in_parallel.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/folder_sink.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "lnorm/io/tensor_set.hpp"
#include "lnorm/io/tensor_sink.hpp"

// One row a format: what it is called, how a file of it is told, opened and created.
namespace lnorm {

// npz stands for .pt, too: both are zip archives. pb is an ONNX tensor. raw is elements alone; text is PyTorch's
// printed form, for output only.
enum class Format { npy, npz, safetensors, json, jsonl, pb, gguf, raw, text };

// The files of several tensors that are open, by their paths.
struct OpenSet {
  std::weak_ptr<const TensorSet> set;
  Format format;
  bool is_folder;
};
using OpenSets = std::map<std::string, OpenSet>;

struct ReadOptions {
  std::optional<Format> from = {};  // not by content
  bool yields = false;  // but where the bytes begin with what tells their format (tells_format)
  std::optional<DType> as =
      {};  // of elements whose dtype the file does not tell (npy.hpp; raw; JSON of inputs)

  // These are of raw alone, which needs a shape. One size may be -1: what the length of the file says.
  std::optional<Shape> shape = {};
  std::int64_t offset = 0;  // bytes before the elements
  std::endian byte_order = std::endian::little;

  InParallel in_parallel = one_by_one;  // of what is read as a whole

  // If given, a file of several tensors is opened, and its header read, once for all that share it.
  std::shared_ptr<OpenSets> files = nullptr;
};

struct WriteOptions {
  JsonNan nan = JsonNan::python;
  MakeTensorSink text;  // prints a tensor
};

struct FormatRow {
  Format format;
  std::string_view name;             // in options and messages, and the extension in a folder
  std::string_view other_name;       // that --from takes as well
  std::string_view extensions;       // ".json", with blanks between them
  std::string_view read_extensions;  // of files that are read and not written
  bool is_binary;
  bool has_random_access;  // of its elements, where they go to a regular file

  // Null if the format is not read. line: of a format of lines, the number of the one to read.
  std::unique_ptr<TensorSet> (*open)(std::unique_ptr<ByteSource> bytes, const ReadOptions& options,
                                     const std::optional<std::string>& line);
  // A file of one tensor. Null if the format is not written, or if create_set does it.
  std::unique_ptr<TensorSink> (*create)(ByteSink& bytes, const TensorInfo& tensor,
                                        const WriteOptions& options);
  // A file of several by their names. Null if the format holds one alone.
  std::unique_ptr<TensorSetSink> (*create_set)(ByteSink& bytes,
                                               const std::vector<TensorInfo>& tensors,
                                               const WriteOptions& options);

  bool is_written() const noexcept { return create != nullptr || create_set != nullptr; }
};

// The rows have the order of Format.
std::span<const FormatRow> formats();
const FormatRow& format_row(Format format);

// Creates a file of this tensor alone. Requires a format that is written.
std::unique_ptr<TensorSink> create_tensor(Format format, ByteSink& bytes, const TensorInfo& tensor,
                                          const WriteOptions& options);

// It has the dot, and is in lower case; it is empty if there is none.
std::string extension(std::string_view path);

// The format that has the file name's extension.
std::optional<Format> format_of_extension(std::string_view path);

}  // namespace lnorm
