#pragma once

#include <cstdint>
#include <memory>

#include "lnorm/io/os.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"

// Positions for tensors that have none, by way of a temporary file without a name in $TMPDIR or /tmp.
// Throws Error if that fails.
namespace lnorm {

// A source with positions is used as it is. One without, such as a pipe, is read to its end first.
class PositionedSource {
 public:
  explicit PositionedSource(TensorSource& source);

  TensorSource& operator*() const noexcept { return *source_; }

 private:
  std::unique_ptr<TensorSource> spooled_;
  TensorSource* source_;
};

// A tensor that is written at positions, and then can be read.
class TensorSpool final : public TensorSink {
 public:
  // info: of what is written; in native byte order.
  explicit TensorSpool(TensorInfo info);

  bool has_positions() const noexcept override { return true; }
  void write_at(std::int64_t position, std::span<const std::byte> elements) const override;
  void write(std::span<const std::byte> encoded) override;
  void finish() override {}

  // Follows the last element. May be called once.
  std::unique_ptr<TensorSource> source();

 private:
  TensorInfo info_;
  std::string file_name_;
  os::FileDescriptor file_;
};

// A sink with positions is used as it is. One without gets the elements in finish(), in order.
class PositionedSink {
 public:
  // info: of what is written.
  PositionedSink(TensorSink& sink, const TensorInfo& info);

  TensorSink& operator*() const noexcept;

  // In place of the sink's own.
  void finish();

 private:
  TensorSink& sink_;
  std::unique_ptr<TensorSpool> spool_;
};

}  // namespace lnorm
