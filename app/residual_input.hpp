#pragma once

#include <memory>
#include <optional>

#include "arguments.hpp"
#include "auxiliary_input.hpp"
#include "each_tensor.hpp"
#include "lnorm/io/tensor_source.hpp"

namespace lnorm::app {

// Throws Error for a float8, to which no layer rounds on its way.
void check_rounding_dtype(DType out);

// --residual, which is added to each input before it is normalized. Where it is not given, the input is what is
// normalized.
class ResidualInput {
 public:
  ResidualInput(const NormalizationArguments& arguments, const ReadOptions& input);

  // What is normalized, where results have a dtype. Throws Error unless there is a residual for x, of its shape: of a
  // slice that of the whole tensor.
  TensorInfo check(const TensorInfo& x, DType out, const InputName& name);

  // Opens it with its elements. Follows check of the same input. Throws Error.
  std::unique_ptr<TensorSource> add_to(std::unique_ptr<TensorSource> x, DType out, int threads);

  // The residual again, with random access; null where it cannot be read twice, or where the sum is not rounded.
  std::unique_ptr<TensorSource> again(const TensorInfo& x);

  // Follows the last element.
  void finish() const;

  bool has_dtype(DType dtype) const { return auxiliary_ && auxiliary_->has_dtype(dtype); }

 private:
  std::optional<DType> rounded_to(DType out) const {
    return rounds_ ? std::optional(out) : std::nullopt;
  }

  std::optional<AuxiliaryInput> auxiliary_;
  bool rounds_;
};

}  // namespace lnorm::app
