#include "output_file.hpp"

#include <algorithm>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/npy.hpp"
#include "lnorm/report/text_sink.hpp"

namespace lnorm::app {

namespace {

Format main_format(const OutputArguments& arguments, const ByteSink& bytes, Format input) {
  if (arguments.format) return *arguments.format;
  if (const auto by_extension = named_format(arguments.path)) return *by_extension;
  return bytes.is_terminal() ? Format::text : input;
}

}  // namespace

void OutputFile::begin(const OutputArguments& arguments, Format input, const Plan& plan) {
  begin(main_format(arguments, bytes_, input), {bytes_.name(), plan.out, plan.shape}, arguments);
}

void OutputFile::begin(Format format, const TensorInfo& info, const OutputArguments& arguments) {
  format_ = format;
  switch (format) {
    case Format::json:
      sink_ = make_json_sink(bytes_, info, arguments.nan);
      break;
    case Format::text:
      sink_ = make_text_sink(bytes_, info, arguments.print);
      break;
    case Format::npy:
      sink_ = make_npy_sink(bytes_, info);
      break;
  }
}

std::optional<Format> named_format(const std::string& path) {
  const std::string ending = extension(path);
  for (const char* const unwritten : {".npz", ".safetensors", ".jsonl"}) {
    if (ending == unwritten) {
      throw Error(concat(printable(path), ": ", ending,
                         " is not written yet, expected .npy, .json or .txt"));
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
