#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "output_file.hpp"

// The loop over tensors, of every command: open one, work on it, go on to the next; then finish and commit.
namespace lnorm::app {

struct OutputName {
  std::string option;  // that names it
  std::string path;
};

inline const OutputName kStandardOutput{"standard output", "-"};

// The files that a command writes, its result first. All are opened at the first use, which is when the
// first tensor is known to fit.
class Outputs {
 public:
  explicit Outputs(std::vector<OutputName> names) : names_(std::move(names)) {}

  OutputFile& operator[](std::size_t index);

  // Throws Error for an option of a format that none of the files has, all of which have begun.
  void check_effects(const OutputArguments& arguments) const;

  // Hands on what is written, so that it is seen at once.
  void flush();

  // Finishes all, then puts all in their places, the result last.
  void commit();

 private:
  void open();

  std::vector<OutputName> names_;
  std::vector<std::unique_ptr<OutputFile>> files_;
};

using Work = std::function<void(OpenedTensor& input, Outputs& outputs)>;

// Returns the exit status. Throws Error.
int for_each_tensor(const InputArguments& input, std::vector<OutputName> outputs, const Work& work);

// The same for tensors that are open already.
int for_each_tensor(const TensorSequence& next, std::vector<OutputName> outputs, const Work& work);

// Throws Error if --as is given, but x has another dtype.
void check_as(std::optional<DType> as, const TensorInfo& x);

}  // namespace lnorm::app
