#include "output_file.hpp"

#include <algorithm>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/npy.hpp"
#include "lnorm/report/text_sink.hpp"

namespace lnorm::app {

void OutputFile::begin(Format format, const TensorInfo& info, const OutputArguments& arguments) {
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
