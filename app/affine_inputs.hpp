#pragma once

#include <optional>

#include "arguments.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm::app {

// Throws Error if standard input is named for more than one of the tensors.
void check_inputs(const InputArguments& input, const NormalizationArguments& arguments);

// --weight and --bias: files, members of one, JSON, or numbers.
class AffineInputs {
 public:
  // as: for files whose dtype it can be.
  AffineInputs(const NormalizationArguments& arguments, std::optional<DType> as)
      : arguments_(arguments), as_(as) {}

  // What multiplies a plan's rows, and what is added. It is read again only if the normalized shape is not
  // that of the last time. Throws Error.
  const Affine& of(const Plan& plan, const OpenedTensor& input);

  // Throws Error if --as is given, but is neither for the input nor for weight or bias.
  void check_as(const TensorInfo& input) const;

 private:
  const NormalizationArguments& arguments_;
  std::optional<DType> as_;
  std::optional<Shape> shape_;
  Affine affine_;
  bool reads_as_ = false;
};

}  // namespace lnorm::app
