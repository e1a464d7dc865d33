#include "output_file.hpp"

#include <algorithm>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/npy.hpp"
#include "lnorm/io/safetensors.hpp"
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
  begin(main_format(arguments, bytes_, input.format), {bytes_.name(), plan.out, plan.shape},
        arguments.name.value_or(input.label), arguments);
}

void OutputFile::begin(Format format, const TensorInfo& info, const std::string& name,
                       const OutputArguments& arguments) {
  format_ = format;
  switch (format) {
    case Format::json:
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
  const std::string ending = extension(path);
  for (const char* const unwritten : {".npz", ".jsonl"}) {
    if (ending == unwritten) {
      throw Error(concat(printable(path), ": ", ending,
                         " is not written yet, expected .npy, .safetensors, .json or .txt"));
    }
  }
  return format_of_extension(path);
}

void check_destinations(std::span<const std::unique_ptr<OutputFile>> files) {
  std::vector<std::string> seen;
  for (const auto& file : files) {
    const std::string destination = file->bytes().destination();
    if (!destination.empty() && std::find(seen.begin(), seen.end(), destination) != seen.end()) {
      throw Error(
          concat(printable(file->bytes().name()), " is named for two outputs, expected one"));
    }
    seen.push_back(destination);
  }
}

}  // namespace lnorm::app
