#include "each_tensor.hpp"

#include <algorithm>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

OutputFile& Outputs::operator[](std::size_t index) {
  if (files_.empty()) open();
  return *files_[index];
}

void Outputs::open() {
  std::vector<std::string> destinations;
  for (const std::string& path : paths_) {
    files_.push_back(std::make_unique<OutputFile>(path));
    const ByteSink& bytes = files_.back()->bytes();
    std::string destination = bytes.destination();
    if (!destination.empty() &&
        std::find(destinations.begin(), destinations.end(), destination) != destinations.end()) {
      throw Error(concat(printable(bytes.name()), " is named for two outputs, expected one"));
    }
    destinations.push_back(std::move(destination));
  }
  if (files_.size() > 1) files_.front()->bytes().outlive_reader();
}

void Outputs::flush() {
  for (const auto& file : files_) file->bytes().flush();
}

void Outputs::commit() {
  if (files_.empty()) open();
  for (const auto& file : files_) file->bytes().finish();
  std::for_each(files_.rbegin(), files_.rend(), [](const auto& file) { file->bytes().commit(); });
}

int for_each_tensor(const InputArguments& input, std::vector<std::string> outputs,
                    const Work& work) {
  return for_each_tensor(open_tensors(input.name, input.options), input, std::move(outputs), work);
}

int for_each_tensor(const TensorSequence& next, const InputArguments& input,
                    std::vector<std::string> paths, const Work& work) {
  Outputs outputs(std::move(paths));
  while (std::optional<OpenedTensor> tensor = next()) {
    const TensorInfo& info = tensor->source->info();
    if (const auto as = input.options.as; as && info.dtype != *as) {
      throw Error(concat(printable(info.name), ": is ", name(info.dtype), ", found --as ",
                         name(*as), ", which is for an .npy of dtype V2"));
    }
    work(*tensor, outputs);
    if (tensor->format == Format::jsonl) outputs.flush();
  }
  outputs.commit();
  return 0;
}

}  // namespace lnorm::app
