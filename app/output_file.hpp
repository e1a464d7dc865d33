#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "arguments.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm::app {

// A place that the user named, and the tensors that go there: one, or those of JSON Lines in turn.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : bytes_(path) {}

  ByteSink& bytes() noexcept { return bytes_; }

  // The command's result, in the format asked for. The default is the path's format, else text on a
  // terminal, else the input's, if it is one of single tensors. What .npy does not have, bfloat16, goes as
  // safetensors.
  void begin(const OutputArguments& arguments, const OpenedTensor& input, const Plan& plan);
  // name: of the tensor, for formats that have one.
  void begin(const OpenedTensor& input, Format format, const TensorInfo& info,
             const std::string& name, const OutputArguments& arguments);

  TensorSink& sink() noexcept { return *sink_; }
  Format format() const noexcept { return format_; }

  // Whether the work writes to a terminal as it goes: there a line of progress would be in the way. Text
  // comes at the end.
  bool fills_terminal() const noexcept { return format_ != Format::text && bytes_.is_terminal(); }

 private:
  ByteSink bytes_;
  Format format_ = Format::npy;
  std::unique_ptr<TensorSink> sink_;
};

bool is_binary(Format format) noexcept;

// As --to has it.
std::string_view format_name(Format format) noexcept;

}  // namespace lnorm::app
