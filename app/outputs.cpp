#include "outputs.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/folder_sink.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/report/torch_text.hpp"

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

// Drops what another rank writes without random access.
class NoSink final : public TensorSink {
 public:
  void write(std::span<const std::byte>) override {}
  void finish() override {}
};

// A folder is named with a slash, or is one already, and several tensors are to go there.
bool is_folder(const std::string& path, bool several) {
  std::error_code ignored;
  return path.ends_with('/') || (several && std::filesystem::is_directory(path, ignored));
}

// For a file that cannot be made: its folder may not be there.
std::string hint_for_folder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  std::error_code error;
  const bool is_missing = !folder.empty() && !std::filesystem::exists(folder, error) && !error;
  if (folder.starts_with('-')) folder.insert(0, "./");
  return is_missing ? concat("mkdir -p ", shell_word(folder)) : "";
}

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

void open_output(const std::string& option, const std::string& path,
                 const std::function<void()>& open) {
  try {
    open();
  } catch (const SystemError& error) {
    std::error_code ignored;
    const bool is_there = std::filesystem::exists(path, ignored);
    throw SystemError(concat("cannot ", is_there ? "write " : "create ", option, ' ', error.what()),
                      hint_for_folder(path));
  } catch (const Error& error) {
    throw Error(concat(option, ' ', error.what()), error);
  }
}

// A place that the user named, and the tensors that go there: one, several by their names, or those of JSON Lines
// in turn.
class OutputFile {
 public:
  // several: tensors by their names. Throws Error if the path cannot be written.
  OutputFile(const OutputName& name, const OutputArguments& arguments, bool several, Ranks& ranks)
      : place_(name), arguments_(arguments), several_(several), drops_(!ranks.is_first()) {
    if (arguments.in_memory != nullptr) {
      const auto found = arguments.in_memory->find(name.path);
      if (found != arguments.in_memory->end()) {
        memory_ = &found->second;
        return;
      }
    }
    const std::string title = concat(name.option, ' ', name.path);
    bool to_folder = is_folder(name.path, several);
    broadcast(ranks, to_folder);
    if (!to_folder) {
      open_file(title, ranks);
    } else if (!drops_) {
      folder_.emplace(name.path);
      folder_->set_name(title);
    }
  }

  // Before the first of several tensors: those that will begin.
  void announce(Format input, const std::vector<TensorInfo>& tensors) {
    format_ = format_for(input, tensors.front().dtype);
    if (is_nowhere()) return;
    if (folder_) {
      set_ = make_folder_set_sink(
          *folder_,
          [this](const TensorInfo& tensor) {
            return concat('.', format_row(format_for(Format::npy, tensor.dtype)).name);
          },
          [this](ByteSink& bytes, const TensorInfo& tensor) {
            return create_tensor(format_for(Format::npy, tensor.dtype), bytes, tensor,
                                 write_options());
          });
      return;
    }
    const FormatRow& row = format_row(format_);
    if (row.create_set != nullptr) {
      set_ = row.create_set(*file_, tensors, write_options());
    } else if (tensors.size() == 1) {
      several_ = false;
    } else if (format_ != Format::text) {
      throw Error(
          concat(printable(name()), ": ", row.name, " holds one tensor, found ", tensors.size()),
          "what ends in .safetensors, .npz, .json or / holds them all");
    }
  }

  // The next tensor, or the only one.
  void begin(const OpenedTensor& input, const TensorInfo& tensor) {
    if (memory_ != nullptr) return begin_in_memory(tensor);
    if (!is_nowhere()) begin_sink(input, tensor);
    if (refuses_raw_ && format_row(format_).has_random_access) {
      throw Error(concat(printable(name()), ": ranks write ", format_row(format_).name,
                         " at positions, expected a file"),
                  concat(place_.option, " FILE"));
    }
    if (is_nowhere() || (drops_ && !sink_->has_random_access())) sink_ = std::make_unique<NoSink>();
  }

  bool keeps_names() const noexcept { return set_ != nullptr; }
  TensorSink& sink() noexcept { return *sink_; }
  Format format() const noexcept { return format_; }

  // This is the name in messages.
  std::string name() const {
    return folder_ ? folder_->name() : file_ ? file_->name() : place_.path;
  }
  // Where it ends up, as ByteSink says it.
  std::string destination() const {
    if (is_nowhere()) return "";
    if (file_) return file_->destination();
    std::error_code ignored;
    const auto folder = std::filesystem::weakly_canonical(place_.path, ignored);
    return (folder / "").string();
  }

  bool is_regular_file() const { return !file_ || file_->is_regular_file(); }

  // Whether the work writes to a terminal as it goes. Text comes at the end.
  bool fills_terminal() const noexcept { return format_ != Format::text && is_terminal(); }

  // Whether ranks can write tensors of their own that follow each other there. What stands there for other formats, or where,
  // depends on what stands before.
  bool has_random_access() const {
    return set_ && file_ && file_->has_random_access() && format_ == Format::safetensors;
  }

  // These do what ByteSink's do.
  void outlive_reader() noexcept {
    if (file_) file_->outlive_reader();
  }
  void take_over(bool writes) {
    if (file_) file_->take_over(writes);
  }
  void flush() {
    if (file_) file_->flush();
  }
  void finish() {
    if (is_nowhere()) return;
    if (set_) set_->finish();
    folder_ ? folder_->finish() : file_->finish();
  }

  void commit() {
    if (!is_nowhere()) folder_ ? folder_->commit() : file_->commit();
  }

 private:
  bool is_nowhere() const noexcept { return !file_ && !folder_; }
  bool is_terminal() const noexcept { return file_ && file_->is_terminal(); }

  // Rank 0 creates the file, and the others join.
  void open_file(const std::string& title, Ranks& ranks) {
    std::string temporary;
    if (ranks.is_first()) {
      file_.emplace(place_.path);
      temporary = file_->temporary().value_or("");
      refuses_raw_ = ranks.count() > 1 && temporary.empty();
    }
    broadcast(ranks, temporary);
    if (!ranks.is_first() && !temporary.empty()) file_.emplace(place_.path, temporary);
    if (file_ && place_.path != "-") file_->set_name(title);
  }

  // The result has the format asked for; else the path's; else text on a terminal; else the input's, if it is written
  // to pipes. What .npy does not have, bfloat16 and float8, goes as safetensors, as several tensors do. Other outputs are .npy
  // unless their names say more.
  Format format_for(Format input, DType dtype) const {
    if (place_.is_result && arguments_.format) return *arguments_.format;
    if (folder_) return is_npy_dtype(dtype) ? Format::npy : Format::safetensors;
    if (const auto by_extension = format_of_extension(place_.path)) return *by_extension;
    if (!place_.is_result) {
      if (!is_terminal()) return is_npy_dtype(dtype) ? Format::npy : Format::safetensors;
      throw Error(concat(place_.option, ' ', printable(place_.path),
                         ": binary is not written to a terminal"),
                  "name a file, or one that ends in .json or .txt");
    }
    if (is_terminal()) return Format::text;
    if (!format_row(input).is_binary) return input;
    return several_ || !is_npy_dtype(dtype) ? Format::safetensors : Format::npy;
  }

  void begin_in_memory(const TensorInfo& tensor) {
    if (several_) throw Error(concat(place_.path, ": is one tensor, found several to write there"));
    if (!*memory_) {
      sink_ = std::make_unique<NoSink>();
      return;
    }
    const TensorInfo& place = (*memory_)->info;
    if (place.shape != tensor.shape || place.dtype != tensor.dtype) {
      throw Error(concat(place.name, ": is ", lnorm::name(place.dtype), " of shape ",
                         to_string(place.shape), ", expected ", lnorm::name(tensor.dtype),
                         " of shape ", to_string(tensor.shape)));
    }
    sink_ = std::make_unique<MemorySink>(**memory_);
  }

  void begin_sink(const OpenedTensor& input, const TensorInfo& tensor) {
    if (set_) {
      sink_ = set_->begin(tensor);
      return;
    }
    if (!several_) return begin_alone(input, tensor);
    const std::string heading = concat(printable(tensor.name), ": ", lnorm::name(tensor.dtype),
                                       ", shape ", to_string(tensor.shape), "\n");
    file_->write(concat(std::exchange(has_begun_, true) ? "\n" : "", heading));
    sink_ = create_tensor(Format::text, *file_, tensor, write_options());
  }

  void begin_alone(const OpenedTensor& input, const TensorInfo& tensor) {
    TensorInfo named = tensor;
    if (!place_.tensor.empty()) named.name = place_.tensor;
    if (place_.tensor.empty() && arguments_.name) named.name = *arguments_.name;
    format_ = format_for(input.format, tensor.dtype);
    const bool is_line = input.format == Format::jsonl;
    if (is_line && format_ != Format::jsonl && format_ != Format::text) {
      throw Error(
          concat(printable(name()),
                 ": JSON Lines are several tensors, expected a format that holds them: jsonl or "
                 "text"),
          input.before.empty() ? hint_to_name(input.source->info().name) : "");
    }
    if (folder_) {
      announce(input.format, {named});
      sink_ = set_->begin(named);
    } else if (format_ == Format::jsonl) {
      file_->write(input.before);
      sink_ = make_json_sink(*file_, named, arguments_.nan.value_or(JsonNan::python),
                             input.after + "\n");
    } else {
      sink_ = create_tensor(format_, *file_, named, write_options());
    }
  }

  WriteOptions write_options() const {
    return {arguments_.nan.value_or(JsonNan::python),
            [this](ByteSink& bytes, const TensorInfo& tensor) {
              return make_text_sink(bytes, tensor, print_options(arguments_.print, bytes));
            }};
  }

  OutputName place_;
  const OutputArguments& arguments_;
  bool several_;
  std::optional<ByteSink> file_;  // one of these; none for the folder of another rank
  std::optional<FolderSink> folder_;
  const std::optional<Memory>* memory_ = nullptr;  // or it is a result of a job
  bool drops_ = false;        // what has no random access, since another rank writes it
  bool refuses_raw_ = false;  // which ranks would write at positions, and there are none
  Format format_ = Format::npy;
  // The tensors of a format that keeps them by their names, or of the folder.
  std::unique_ptr<TensorSetSink> set_;
  std::unique_ptr<TensorSink> sink_;
  bool has_begun_ = false;
};

Outputs::Outputs(std::vector<OutputName> names, const Arguments& arguments)
    : names_(std::move(names)), arguments_(arguments.output), ranks_(*arguments.work.ranks) {}

Outputs::~Outputs() = default;

TensorSink& Outputs::sink(std::size_t file) { return files_[file]->sink(); }

bool Outputs::fill_terminal() const { return !files_.empty() && files_.front()->fills_terminal(); }

void Outputs::announce(const Selection& inputs, std::span<const std::vector<TensorInfo>> tensors) {
  if (arguments_.name) {
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

bool Outputs::keep_names() const {
  return std::ranges::any_of(files_, [](const auto& file) { return file->keeps_names(); });
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
      files_.push_back(std::make_unique<OutputFile>(name, arguments_, several, ranks_));
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
  if (files_.empty() || !ranks_.is_first()) return;
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
                hint_for_format(names_.front(), arguments_, to));
  };
  const PrintArguments& print = arguments_.print;
  const bool is_summary = print.threshold || !print.edgeitems ||
                          std::any_of(files_.begin(), files_.end(), [](const auto& file) {
                            return file->format() == Format::text && !file->is_regular_file();
                          });
  check(print.given, files_, "text", "text", [](Format format) { return format == Format::text; });
  check(arguments_.nan ? "--nan" : "", files_, "JSON", "json",
        [](Format format) { return format == Format::json || format == Format::jsonl; });
  check(arguments_.name ? "--name" : "", std::span(files_).first(1), "safetensors and npz",
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
  if (names_.empty()) return;
  if (files_.empty()) open(false);
  for (const auto& file : files_) file->finish();
  barrier(ranks_);
  std::for_each(files_.rbegin(), files_.rend(), [](const auto& file) { file->commit(); });
}

}  // namespace lnorm::app
