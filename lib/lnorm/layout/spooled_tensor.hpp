#pragma once

#include <memory>
#include <string>

#include "lnorm/io/os.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/layout/tiles.hpp"

// Random access to tensors that have none, by way of a temporary file without a name in $TMPDIR or
// /tmp. Throws Error if that fails.
namespace lnorm {

// A tensor that is written by write_at, or in order, and then can be read.
class TensorSpool final : public TensorSink {
 public:
  // info: of what is written; in native byte order.
  explicit TensorSpool(TensorInfo info);

  bool has_random_access() const noexcept override { return true; }
  void write_at(std::int64_t offset, std::span<const std::byte> elements) const override;
  void write(std::span<const std::byte> encoded) override;
  void finish() override {}

  // Follows the last element. May be called once.
  std::unique_ptr<TensorSource> source();

 private:
  TensorInfo info_;
  std::string file_name_;
  os::FileDescriptor file_;
};

// The tensor with random access, after the source has been read to its end.
std::unique_ptr<TensorSource> spooled(TensorSource& source);

// Copies a source with random access, whose blocks several threads encode. Finishes neither.
void encode_in_order(const TensorSource& source, TensorSink& sink,
                     const ForEachTile& for_each_tile);

}  // namespace lnorm
