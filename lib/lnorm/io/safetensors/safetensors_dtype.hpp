#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "lnorm/core/dtype.hpp"

namespace lnorm {

// A dtype of safetensors. Those that lnorm does not have are known by the room they take.
struct SafetensorsDType {
  std::string_view name;
  std::int64_t bits;
  std::optional<DType> dtype;
};

// Null if there is none of that name.
const SafetensorsDType* find_safetensors_dtype(std::string_view name);
const SafetensorsDType& safetensors_dtype(DType dtype);

inline constexpr std::string_view kReadSafetensorsDTypes =
    "F64, F32, F16, BF16, I8 to I64, U8 to U64, BOOL";

}  // namespace lnorm
