#include "output_file.hpp"

#include <cstdint>
#include <limits>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/safetensors/safetensors.hpp"
#include "lnorm/report/text_sink.hpp"

namespace lnorm::app {

namespace {

Format main_format(const OutputArguments& arguments, const ByteSink& bytes, Format input,
                   DType output) {
  if (arguments.format) return *arguments.format;
  if (const auto by_extension = format_of_extension(arguments.path)) return *by_extension;
  if (bytes.is_terminal()) return Format::text;
  if (!is_binary(input)) return input;
  return output == DType::bfloat16 ? Format::safetensors : Format::npy;  // an archive is no tensor
}

// A file holds every element: a summary there would be a loss that nobody sees.
PrintOptions print_options(const PrintArguments& arguments, const ByteSink& bytes) {
  PrintOptions options = arguments.options;
  if (bytes.is_regular_file() && !arguments.threshold) {
    options.threshold = std::numeric_limits<std::int64_t>::max();
  }
  return options;
}

}  // namespace

void OutputFile::begin(const OutputArguments& arguments, const OpenedTensor& input,
                       const Plan& plan) {
  begin(input, main_format(arguments, bytes_, input.format, plan.out),
        {bytes_.name(), plan.out, plan.shape}, arguments.name.value_or(input.label), arguments);
}

void OutputFile::begin(const OpenedTensor& input, Format format, const TensorInfo& info,
                       const std::string& name, const OutputArguments& arguments) {
  format_ = format;
  if (input.format == Format::jsonl && format != Format::jsonl && format != Format::text) {
    throw Error(
        concat(printable(bytes_.name()),
               ": JSON Lines are several tensors, expected a format that holds them: jsonl or "
               "text"),
        hint_to_name(input.source->info().name));
  }
  switch (format) {
    case Format::json:
    case Format::jsonl:
      sink_ = make_json_sink(bytes_, info, arguments.nan.value_or(JsonNan::python));
      break;
    case Format::text:
      sink_ = make_text_sink(bytes_, info, print_options(arguments.print, bytes_));
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
  return format == Format::npy || format == Format::npz || format == Format::safetensors ||
         format == Format::raw;
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
    case Format::raw:
      return "raw";
    case Format::text:
      break;
  }
  return "text";
}

}  // namespace lnorm::app
