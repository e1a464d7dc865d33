#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "arguments.hpp"
#include "auxiliary_input.hpp"
#include "lnorm/layout/mask.hpp"

namespace lnorm::app {

// --mask: a file, a member of one, or JSON.
class MaskInput {
 public:
  explicit MaskInput(const Arguments& arguments) {
    if (!arguments.mask) return;
    auxiliary_.emplace("--mask", *arguments.mask, arguments.input.options, parse_literal);
  }

  // Throws Error unless there is one for this input, which can be broadcast to it.
  void check(const TensorInfo& x, const InputName& name);

  // After the same checks; null if it is not given. What was read for the last input is not read again if it is the same.
  const std::shared_ptr<const Mask>& of(const TensorInfo& x, const InputName& name);

  // The same as the rows of x along axes have it.
  std::optional<RowMask> rows(const TensorInfo& x, const Axes& axes, const InputName& name) {
    const std::shared_ptr<const Mask>& mask = of(x, name);
    return mask ? std::optional<RowMask>(std::in_place, mask, x, axes) : std::nullopt;
  }

 private:
  std::optional<AuxiliaryInput> auxiliary_;
  std::shared_ptr<const Mask> mask_;
};

}  // namespace lnorm::app
