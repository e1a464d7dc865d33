#include "each_tensor.hpp"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/os.hpp"

namespace lnorm::app {

namespace {

// For a file that cannot be made: its folder may not be there.
std::string hint_for_folder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  std::error_code error;
  const bool is_missing = !folder.empty() && !std::filesystem::exists(folder, error) && !error;
  if (folder.starts_with('-')) folder.insert(0, "./");
  return is_missing ? concat("mkdir -p ", shell_word(folder)) : "";
}

// How the result gets that format, by its name where that has decided it.
std::string hint_for_format(const OutputArguments& arguments, std::string_view format) {
  std::filesystem::path path = arguments.path;
  if (arguments.format || path.extension().empty()) return concat("--to ", format);
  return concat("-o ",
                shell_word(path.replace_extension(format == "text" ? "txt" : format).string()));
}

}  // namespace

OutputFile& Outputs::operator[](std::size_t index) {
  if (files_.empty()) open();
  return *files_[index];
}

void Outputs::open() {
  std::vector<std::string> destinations;
  for (const auto& [option, path] : names_) {
    try {
      files_.push_back(std::make_unique<OutputFile>(path));
    } catch (const SystemError& error) {
      std::error_code ignored;
      const bool is_there = std::filesystem::exists(path, ignored);
      throw Error(concat("cannot ", is_there ? "write " : "create ", option, ' ', error.what()),
                  hint_for_folder(path));
    } catch (const Error& error) {
      throw Error(concat(option, ' ', error.what()), error.hint());
    }
    ByteSink& bytes = files_.back()->bytes();
    if (path != "-") bytes.set_name(concat(option, ' ', path));
    std::string destination = bytes.destination();
    if (!destination.empty() &&
        std::find(destinations.begin(), destinations.end(), destination) != destinations.end()) {
      throw Error(concat(printable(bytes.name()), " is named for two outputs, expected one"));
    }
    destinations.push_back(std::move(destination));
  }
  if (files_.size() > 1) files_.front()->bytes().outlive_reader();
}

void Outputs::check_effects(const OutputArguments& arguments) const {
  const auto check = [&](std::string_view option,
                         std::span<const std::unique_ptr<OutputFile>> files, std::string_view what,
                         std::string_view to, auto is_format) {
    if (option.empty()) return;
    if (std::any_of(files.begin(), files.end(),
                    [&](const auto& file) { return is_format(file->format()); })) {
      return;
    }
    throw Error(concat(option, " has no effect: it is for ", what, ", and the output is ",
                       format_name(files.front()->format())),
                hint_for_format(arguments, to));
  };
  const bool is_summary =
      arguments.print.threshold || !arguments.print.edgeitems ||
      std::any_of(files_.begin(), files_.end(), [](const auto& file) {
        return file->format() == Format::text && !file->bytes().is_regular_file();
      });
  check(arguments.print.given, files_, "text", "text",
        [](Format format) { return format == Format::text; });
  check(arguments.nan ? "--nan" : "", files_, "JSON", "json",
        [](Format format) { return format == Format::json || format == Format::jsonl; });
  check(arguments.name ? "--name" : "", std::span(files_).first(1), "safetensors", "safetensors",
        [](Format format) { return format == Format::safetensors; });
  if (!is_summary) {
    throw Error("--edgeitems has no effect: text in a file is whole without --threshold");
  }
}

void Outputs::flush() {
  for (const auto& file : files_) file->bytes().flush();
}

void Outputs::commit() {
  if (files_.empty()) open();
  for (const auto& file : files_) file->bytes().finish();
  std::for_each(files_.rbegin(), files_.rend(), [](const auto& file) { file->bytes().commit(); });
}

int for_each_tensor(const InputArguments& input, std::vector<OutputName> outputs,
                    const Work& work) {
  return for_each_tensor(open_tensors(input.name, input.options), std::move(outputs), work);
}

int for_each_tensor(const TensorSequence& next, std::vector<OutputName> names, const Work& work) {
  Outputs outputs(std::move(names));
  while (std::optional<OpenedTensor> tensor = next()) {
    work(*tensor, outputs);
    if (tensor->format == Format::jsonl) outputs.flush();
  }
  outputs.commit();
  return 0;
}

void check_as(std::optional<DType> as, const TensorInfo& x) {
  if (!as || x.dtype == *as) return;
  throw Error(concat(printable(x.name), ": is ", name(x.dtype), ", found --as ", name(*as),
                     ", which is for an .npy of dtype V2"));
}

}  // namespace lnorm::app
