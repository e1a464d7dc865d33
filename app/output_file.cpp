#include "output_file.hpp"

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/safetensors/safetensors.hpp"
#include "lnorm/report/text_sink.hpp"

namespace lnorm::app {

namespace {

Format main_format(const OutputArguments& arguments, const ByteSink& bytes, Format input) {
  if (arguments.format) return *arguments.format;
  if (const auto by_extension = named_format(arguments.path)) return *by_extension;
  if (bytes.is_terminal()) return Format::text;
  return is_binary(input) ? Format::npy : input;  // an archive is no tensor
}

}  // namespace

void OutputFile::begin(const OutputArguments& arguments, const OpenedTensor& input,
                       const Plan& plan) {
  begin(input, main_format(arguments, bytes_, input.format), {bytes_.name(), plan.out, plan.shape},
        arguments.name.value_or(input.label), arguments);
}

void OutputFile::begin(const OpenedTensor& input, Format format, const TensorInfo& info,
                       const std::string& name, const OutputArguments& arguments) {
  format_ = format;
  if (input.format == Format::jsonl && format != Format::jsonl && format != Format::text) {
    throw Error(
        concat(printable(bytes_.name()),
               ": JSON Lines are several tensors, expected a format that holds them: jsonl or "
               "text"),
        "name a line by adding its number to the path, x.jsonl:1");
  }
  switch (format) {
    case Format::json:
    case Format::jsonl:
      sink_ = make_json_sink(bytes_, info, arguments.nan);
      break;
    case Format::text:
      sink_ = make_text_sink(bytes_, info, arguments.print);
      break;
    case Format::safetensors:
      sink_ = make_safetensors_sink(bytes_, info, name);
      break;
    default:
      sink_ = make_npy_sink(bytes_, info);
      break;
  }
}

bool is_binary(Format format) noexcept {
  return format == Format::npy || format == Format::npz || format == Format::safetensors;
}

std::optional<Format> named_format(const std::string& path) {
  if (extension(path) == ".npz") {
    throw Error(
        concat(printable(path),
               ": .npz is not written, expected .npy, .safetensors, .json, .jsonl or .txt"));
  }
  return format_of_extension(path);
}

}  // namespace lnorm::app
