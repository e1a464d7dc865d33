#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/format.hpp"
#include "lnorm/io/members.hpp"

namespace lnorm {

// A tensor that is being read: its header is known, its elements come in C order, once.
class TensorSource {
 public:
  explicit TensorSource(TensorInfo info) : info_(std::move(info)) {}
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;
  virtual ~TensorSource() = default;

  const TensorInfo& info() const noexcept { return info_; }

  // The next bytes of the elements, in the dtype and byte order of info(). The buffer grows no
  // faster than the bytes come. Throws Error if the data ends before that.
  virtual void read(std::vector<std::byte>& to, std::size_t bytes) = 0;

  // Passes over bytes of the elements, without reading them where the file allows it.
  virtual void skip(std::int64_t bytes) = 0;

  // Whether read_at is there: of regular files, and of what is in memory.
  virtual bool has_positions() const noexcept { return false; }

  // Fills to with the bytes of the elements from a position on, in place of read. Several threads may do
  // so at once.
  virtual void read_at(std::int64_t position, std::span<std::byte> to) const;

  // After the last read: throws Error if anything follows the tensor.
  virtual void finish() = 0;

 private:
  TensorInfo info_;
};

class JsonLines;

struct ReadOptions {
  std::optional<Format> from;  // not by content
  std::optional<DType> as;     // for elements whose dtype the file does not tell (npy.hpp)
};

struct OpenedTensor {
  std::unique_ptr<TensorSource> source;
  Format format;
  std::string
      label;  // its own name: the member that was named, or the file's name without extension
};

// Opens what the user names: PATH, PATH:MEMBER (a member of an .npz, a tensor of a .safetensors, a key of
// a JSON object, the number of a line of JSON Lines), or "-", standard input. A file that exists under the whole name wins. The content
// decides the format, then the extension. Throws Error.
OpenedTensor open_tensor(const std::string& name, const ReadOptions& options);

// The tensors that a name stands for, one after another: of JSON Lines, each as its line comes; of all
// else, one.
class TensorSequence {
 public:
  explicit TensorSequence(OpenedTensor tensor);
  TensorSequence(std::unique_ptr<JsonLines> lines, std::string label);
  TensorSequence(TensorSequence&& other) noexcept;
  TensorSequence& operator=(TensorSequence&& other) noexcept;
  ~TensorSequence();

  // Nothing after the last one.
  std::optional<OpenedTensor> next();

 private:
  std::optional<OpenedTensor> single_;
  std::unique_ptr<JsonLines> lines_;
  std::string label_;
};

// The same for a name that may stand for JSON Lines of which none is named.
TensorSequence open_tensors(const std::string& name, const ReadOptions& options);

// The same, but for the members of an .npz or .safetensors of which none is named.
std::variant<TensorSequence, std::unique_ptr<Members>> open_tensors_or_members(
    const std::string& name, const ReadOptions& options);

// "-" and "-:MEMBER".
bool is_standard_input(std::string_view name) noexcept;

// All elements, as the file holds them; checks that nothing follows.
std::vector<std::byte> read_all(TensorSource& source);

}  // namespace lnorm
