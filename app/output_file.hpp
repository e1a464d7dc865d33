#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "arguments.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/tensor_sink.hpp"

namespace lnorm::app {

// A tensor on its way to a place that the user named. The order for several: begin all, write, finish
// all, commit all.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : bytes_(path) {}

  ByteSink& bytes() noexcept { return bytes_; }
  const ByteSink& bytes() const noexcept { return bytes_; }

  void begin(Format format, const TensorInfo& info, const OutputArguments& arguments);
  TensorSink& sink() noexcept { return *sink_; }

  // After the sink has been finished.
  void finish() { bytes_.finish(); }
  void commit() { bytes_.commit(); }

 private:
  ByteSink bytes_;
  std::unique_ptr<TensorSink> sink_;
};

// The format that a name's extension asks for, or nothing. Throws Error for those that lnorm knows and
// does not write.
std::optional<Format> named_format(const std::string& path);

// Throws Error if two of them would write to the same place.
void check_destinations(std::span<const std::unique_ptr<OutputFile>> files);

}  // namespace lnorm::app
