#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "output_file.hpp"

// The loop over tensors, of every command: open one, work on it, go on to the next; then finish and commit.
namespace lnorm::app {

// The files that a command writes, its result first. All are opened at the first use, which is when the
// first tensor is known to fit.
class Outputs {
 public:
  explicit Outputs(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  OutputFile& operator[](std::size_t index);

  // Hands on what is written, so that it is seen at once.
  void flush();

  // Finishes all, then puts all in their places, the result last.
  void commit();

 private:
  void open();

  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<OutputFile>> files_;
};

using Work = std::function<void(OpenedTensor& input, Outputs& outputs)>;

// Returns the exit status. Throws Error.
int for_each_tensor(const InputArguments& input, std::vector<std::string> outputs,
                    const Work& work);

// The same for tensors that are open already. Throws Error if --as does not apply to one.
int for_each_tensor(const TensorSequence& next, const InputArguments& input,
                    std::vector<std::string> outputs, const Work& work);

}  // namespace lnorm::app
