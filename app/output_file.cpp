#include "output_file.hpp"

#include <cstdint>
#include <limits>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/safetensors/safetensors.hpp"
#include "lnorm/report/text_sink.hpp"

namespace lnorm::app {

namespace {

// A file holds every element: a summary there would be a loss that nobody sees.
PrintOptions print_options(const PrintArguments& arguments, const ByteSink& bytes) {
  PrintOptions options = arguments.options;
  if (bytes.is_regular_file() && !arguments.threshold) {
    options.threshold = std::numeric_limits<std::int64_t>::max();
  }
  return options;
}

}  // namespace

OutputFile::OutputFile(const OutputName& name, const OutputArguments& arguments, bool several)
    : place_(name), arguments_(arguments), bytes_(name.path), several_(several) {
  if (name.path != "-") bytes_.set_name(concat(name.option, ' ', name.path));
}

// The result has the format asked for; else the path's; else text on a terminal; else the input's, if it is written
// to pipes. What .npy does not have, bfloat16, goes as safetensors. Other outputs are .npy unless their names say
// more.
Format OutputFile::format_for(Format input, DType dtype) const {
  const bool is_result = place_.tensor.empty();
  if (is_result && arguments_.format) return *arguments_.format;
  if (const auto by_extension = format_of_extension(place_.path)) return *by_extension;
  if (!is_result) {
    if (!bytes_.is_terminal()) return Format::npy;
    throw Error(concat(printable(place_.path), ": binary is not written to a terminal"),
                "name a file, or one that ends in .json or .txt");
  }
  if (bytes_.is_terminal()) return Format::text;
  if (!is_binary(input)) return input;
  return several_ || dtype == DType::bfloat16 ? Format::safetensors : Format::npy;
}

void OutputFile::announce(Format input, std::vector<TensorInfo> tensors) {
  format_ = format_for(input, tensors.front().dtype);
  const JsonNan nan = arguments_.nan.value_or(JsonNan::python);
  if (arguments_.name && place_.tensor.empty()) {
    throw Error(concat("--name is for one tensor, found ", tensors.size()));
  }
  switch (format_) {
    case Format::safetensors:
      set_ = make_safetensors_sink(bytes_, std::move(tensors));
      break;
    case Format::json:
      set_ = make_json_object_sink(bytes_, nan);
      break;
    case Format::text:
      break;
    default:
      throw Error(concat(printable(name()), ": ", format_name(format_), " holds one tensor, found ",
                         tensors.size()),
                  "an output that ends in .safetensors, .npz, .json or / holds them all");
  }
}

void OutputFile::begin(const OpenedTensor& input, const TensorInfo& tensor) {
  if (set_) {
    sink_ = set_->begin(tensor);
    return;
  }
  if (!several_) return begin_alone(input, tensor);
  const std::string heading = concat(printable(tensor.name), ": ", lnorm::name(tensor.dtype),
                                     ", shape ", to_string(tensor.shape), "\n");
  bytes_.write(concat(std::exchange(has_begun_, true) ? "\n" : "", heading));
  sink_ = make_text_sink(bytes_, tensor, print_options(arguments_.print, bytes_));
}

void OutputFile::begin_alone(const OpenedTensor& input, const TensorInfo& tensor) {
  format_ = format_for(input.format, tensor.dtype);
  TensorInfo named = tensor;
  if (!place_.tensor.empty()) named.name = place_.tensor;
  if (place_.tensor.empty() && arguments_.name) named.name = *arguments_.name;
  const bool is_line = input.format == Format::jsonl;
  if (is_line && format_ != Format::jsonl && format_ != Format::text) {
    throw Error(
        concat(printable(name()),
               ": JSON Lines are several tensors, expected a format that holds them: jsonl or "
               "text"),
        hint_to_name(input.source->info().name));
  }
  switch (format_) {
    case Format::json:
    case Format::jsonl:
      bytes_.write(input.before);
      sink_ = make_json_sink(bytes_, named, arguments_.nan.value_or(JsonNan::python),
                             input.after + "\n");
      break;
    case Format::text:
      sink_ = make_text_sink(bytes_, named, print_options(arguments_.print, bytes_));
      break;
    case Format::safetensors:
      set_ = make_safetensors_sink(bytes_, {named});
      sink_ = set_->begin(named);
      break;
    default:
      sink_ = make_npy_sink(bytes_, named);
      break;
  }
}

void OutputFile::finish() {
  if (set_) set_->finish();
  bytes_.finish();
}

bool is_binary(Format format) noexcept {
  return format == Format::npy || format == Format::npz || format == Format::safetensors;
}

std::string_view format_name(Format format) noexcept {
  switch (format) {
    case Format::npy:
      return "npy";
    case Format::npz:
      return "npz";
    case Format::safetensors:
      return "safetensors";
    case Format::json:
      return "json";
    case Format::jsonl:
      return "jsonl";
    case Format::text:
      break;
  }
  return "text";
}

}  // namespace lnorm::app
