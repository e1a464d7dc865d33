#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "lnorm/core/norm.hpp"

namespace lnorm {

// Which axes are normalized, in the ways people say it. Negative axes count from the end.
struct FirstAxis {  // ONNX: this axis and all after it
  std::int64_t axis = -1;
};
struct NormalizedShape {  // PyTorch: the trailing extents, which must match the tensor's
  std::vector<std::int64_t> extents;
};
struct AxisList {  // the axes themselves, in any order
  std::vector<std::int64_t> axes;
};
struct Groups {  // torch.nn.GroupNorm: some channels, over all other axes but the first
  std::int64_t groups = 1;
  std::int64_t channel_axis = 1;
};
using NormalizedAxes = std::variant<FirstAxis, NormalizedShape, AxisList, Groups>;

// Where else than at the end results are rounded to their dtype, in y = xhat * weight + bias.
struct Rounding {
  bool xhat = false;     // before it is multiplied
  bool product = false;  // before bias is added

  bool operator==(const Rounding&) const = default;
};

struct LayerNormOptions {
  NormalizedAxes axes = FirstAxis{};
  Formula formula;
  bool zero_centered_weight = false;  // multiply by 1 + weight
  Rounding rounding = {};
  std::optional<AxisList> affine_axes =
      {};  // weight and bias run along them; none: along the normalized ones
};

}  // namespace lnorm
