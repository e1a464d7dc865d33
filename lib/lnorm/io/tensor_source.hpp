#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

// A tensor that is being read. Its header is known. Its elements come in the order of info(), and once:
// either one after another, by read and skip, or by position.
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

// All elements, as the file holds them; checks that nothing follows.
std::vector<std::byte> read_all(TensorSource& source);

}  // namespace lnorm
