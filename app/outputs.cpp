#include "outputs.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "output_file.hpp"

namespace lnorm::app {

namespace {

// How the first output gets that format, by its name where that has decided it.
std::string hint_for_format(const OutputName& name, const OutputArguments& arguments,
                            std::string_view format) {
  std::filesystem::path path = name.path;
  if (arguments.format || path.extension().empty()) return concat("--to ", format);
  return concat(name.option, ' ',
                shell_word(path.replace_extension(format == "text" ? "txt" : format).string()));
}

}  // namespace

void check_float8(const OutputArguments& arguments, DType dtype) {
  if (is_float8(dtype) || (!arguments.saturates && !arguments.scale)) return;
  throw Error(concat(arguments.saturates ? "--saturate" : "--output-scale",
                     " has no effect: it is for float8, and the output is ", name(dtype)),
              arguments.dtype ? "" : "--dtype float8_e4m3fn");
}

void Outputs::announce(const Selection& inputs, std::span<const std::vector<TensorInfo>> tensors) {
  if (arguments_ != nullptr && arguments_->name) {
    throw Error(concat("--name is for one tensor, found ", tensors.size()));
  }
  open(true);
  if (tensors.empty() && !files_.empty()) {
    throw Error(concat(printable(inputs.name), ": has no tensors"));
  }
  for (std::size_t file = 0; file < files_.size(); ++file) {
    std::vector<TensorInfo> announced;
    for (const std::vector<TensorInfo>& tensor : tensors) announced.push_back(tensor[file]);
    files_[file]->announce(inputs.tensors.front().format, announced);
  }
}

void Outputs::begin(const OpenedTensor& input, std::span<const TensorInfo> tensor) {
  if (files_.empty()) open(false);
  for (std::size_t file = 0; file < files_.size(); ++file) files_[file]->begin(input, tensor[file]);
  if (!std::exchange(checked_, true)) check_effects();
}

void Outputs::open(bool several) {
  std::vector<std::string> destinations;
  for (const OutputName& name : names_) {
    open_output(name.option, name.path, [&] {
      files_.push_back(std::make_unique<OutputFile>(name, *arguments_, several, *ranks_));
    });
    const OutputFile& file = *files_.back();
    std::string destination = file.destination();
    if (!destination.empty() &&
        std::find(destinations.begin(), destinations.end(), destination) != destinations.end()) {
      throw Error(concat(printable(file.name()), " is named for two outputs, expected one"));
    }
    destinations.push_back(std::move(destination));
  }
  if (files_.size() == 1) return;
  for (const auto& file : files_) file->outlive_reader();
}

// Throws Error for an option of a format, if no file has this format. All files have begun.
void Outputs::check_effects() const {
  if (files_.empty() || !ranks_->is_first()) return;
  const auto check = [&](std::string_view option,
                         std::span<const std::unique_ptr<OutputFile>> files, std::string_view what,
                         std::string_view to, auto is_format) {
    if (option.empty()) return;
    if (std::any_of(files.begin(), files.end(),
                    [&](const auto& file) { return is_format(file->format()); })) {
      return;
    }
    throw Error(concat(option, " has no effect: it is for ", what, ", and the output is ",
                       format_row(files.front()->format()).name),
                hint_for_format(names_.front(), *arguments_, to));
  };
  const PrintArguments& print = arguments_->print;
  const bool is_summary = print.threshold || !print.edgeitems ||
                          std::any_of(files_.begin(), files_.end(), [](const auto& file) {
                            return file->format() == Format::text && !file->is_regular_file();
                          });
  check(print.given, files_, "text", "text", [](Format format) { return format == Format::text; });
  check(arguments_->nan ? "--nan" : "", files_, "JSON", "json",
        [](Format format) { return format == Format::json || format == Format::jsonl; });
  check(arguments_->name ? "--name" : "", std::span(files_).first(1), "safetensors and npz",
        "safetensors",
        [](Format format) { return format == Format::safetensors || format == Format::npz; });
  if (!is_summary) {
    throw Error("--edgeitems has no effect: text in a file is whole without --threshold");
  }
}

bool Outputs::have_random_access() const {
  return std::all_of(files_.begin(), files_.end(),
                     [](const auto& file) { return file->has_random_access(); });
}

void Outputs::write_alone(bool alone) {
  for (const auto& file : files_) file->take_over(alone);
}

void Outputs::skip() {
  for (const auto& file : files_) file->sink().skip();
}

void Outputs::flush() {
  for (const auto& file : files_) file->flush();
}

void Outputs::commit() {
  if (files_.empty()) open(false);
  for (const auto& file : files_) file->finish();
  barrier(*ranks_);
  std::for_each(files_.rbegin(), files_.rend(), [](const auto& file) { file->commit(); });
}

}  // namespace lnorm::app
