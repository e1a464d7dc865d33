#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/folder_sink.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/io/tensor_sink.hpp"

namespace lnorm::app {

struct OutputName {
  std::string option;  // that names it
  std::string path;
  // What its tensor is called if there is one alone; empty: as the input's.
  std::string tensor;
  bool is_result =
      false;  // --to is for it; without --to and an extension it has the input's format
};

// A place that the user named, and the tensors that go there: one, several by their names, or those of JSON Lines
// in turn.
class OutputFile {
 public:
  // several: tensors by their names. Throws Error if the path cannot be written.
  OutputFile(const OutputName& name, const OutputArguments& arguments, bool several, Ranks& ranks);

  // Before the first of several tensors: those that will begin.
  void announce(Format input, const std::vector<TensorInfo>& tensors);

  // The next tensor, or the only one.
  void begin(const OpenedTensor& input, const TensorInfo& tensor);

  TensorSink& sink() noexcept { return *sink_; }
  Format format() const noexcept { return format_; }

  // This is the name in messages.
  std::string name() const {
    return folder_ ? folder_->name() : file_ ? file_->name() : place_.path;
  }
  // Where it ends up, as ByteSink says it.
  std::string destination() const;
  bool is_regular_file() const { return !file_ || file_->is_regular_file(); }
  void outlive_reader() noexcept;

  // Whether the work writes to a terminal as it goes. Text comes at the end.
  bool fills_terminal() const noexcept { return format_ != Format::text && is_terminal(); }

  // Whether ranks can write tensors of their own that follow each other there.
  bool has_random_access() const;

  // These do what ByteSink's do.
  void take_over(bool writes);
  void flush();
  void finish();
  void commit();

 private:
  bool is_nowhere() const noexcept { return !file_ && !folder_; }
  bool is_terminal() const noexcept { return file_ && file_->is_terminal(); }
  Format format_for(Format input, DType dtype) const;
  void open_file(const std::string& title, Ranks& ranks);
  void begin_sink(const OpenedTensor& input, const TensorInfo& tensor);
  void begin_alone(const OpenedTensor& input, const TensorInfo& tensor);
  void begin_in_memory(const TensorInfo& tensor);
  WriteOptions write_options() const;

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

// Calls open(), which opens what an option has named. Throws Error, which names the option, if that fails.
void open_output(const std::string& option, const std::string& path,
                 const std::function<void()>& open);

}  // namespace lnorm::app
