#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/io/tensor_sink.hpp"

namespace lnorm::app {

// Throws Error if an option of float8 is given for another dtype, which is that of the result.
void check_float8(const OutputArguments& arguments, DType dtype);

// Calls open(), which opens what an option has named. Throws Error, which names the option, if that fails.
void open_output(const std::string& option, const std::string& path,
                 const std::function<void()>& open);

struct OutputName {
  std::string option;  // that names it
  std::string path;
  // What its tensor is called if there is one alone; empty: as the input's.
  std::string tensor;
  bool is_result =
      false;  // --to is for it; without --to and an extension it has the input's format
};

class OutputFile;  // outputs.cpp

// The files that a command writes, its result first. They are opened when it is known what goes there, which is
// when the tensors are known to fit.
class Outputs {
 public:
  // arguments: of the result, of which the others take what is not a matter of its format alone.
  Outputs(std::vector<OutputName> names, const Arguments& arguments);
  ~Outputs();

  // Several tensors will begin, in this order; tensors[i] has what each file gets of the one.
  void announce(const Selection& inputs, std::span<const std::vector<TensorInfo>> tensors);

  // Whether a file that is announced keeps its tensors by their names.
  bool keep_names() const;

  // The next tensor begins in every file: tensor has what each gets.
  void begin(const OpenedTensor& input, std::span<const TensorInfo> tensor);

  // Where the tensor under way goes.
  TensorSink& sink(std::size_t file);

  // Whether the result goes to a terminal as it comes: there a line of progress would be in the way.
  bool fill_terminal() const;

  // Hands on what is written, so that it is seen at once.
  void flush();

  // Whether ranks can write announced tensors of their own.
  bool have_random_access() const;

  // Before a tensor begins: whether this rank writes all of it, or what ranks write together, each its part.
  void write_alone(bool alone);

  // Replaces writing, where another rank writes the tensor under way.
  void skip();

  // Finishes all, then, as soon as all ranks have, puts all in their places, the result last.
  void commit();

 private:
  void open(bool several);
  void check_effects() const;

  std::vector<OutputName> names_;
  const OutputArguments& arguments_;
  Ranks& ranks_;
  std::vector<std::unique_ptr<OutputFile>> files_;
  bool checked_ = false;
};

}  // namespace lnorm::app
