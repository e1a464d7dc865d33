#pragma once

#include <optional>

#include "arguments.hpp"
#include "lnorm/io/open_tensor.hpp"

namespace lnorm::app {

// The tensors that a command works on, one after another.
class Inputs {
 public:
  explicit Inputs(const InputArguments& arguments);
  Inputs(TensorSequence tensors, const InputArguments& arguments);

  // Nothing after the last one. Throws Error, too, where --as does not apply to it.
  std::optional<OpenedTensor> next();

 private:
  TensorSequence tensors_;
  ReadOptions options_;
};

}  // namespace lnorm::app
