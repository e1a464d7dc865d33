#pragma once

#include <algorithm>
#include <array>
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

inline constexpr std::array kSafetensorsDTypes{
    SafetensorsDType{"BOOL", 8, DType::boolean},
    SafetensorsDType{"I8", 8, DType::int8},
    SafetensorsDType{"I16", 16, DType::int16},
    SafetensorsDType{"I32", 32, DType::int32},
    SafetensorsDType{"I64", 64, DType::int64},
    SafetensorsDType{"U8", 8, DType::uint8},
    SafetensorsDType{"U16", 16, DType::uint16},
    SafetensorsDType{"U32", 32, DType::uint32},
    SafetensorsDType{"U64", 64, DType::uint64},
    SafetensorsDType{"F16", 16, DType::float16},
    SafetensorsDType{"BF16", 16, DType::bfloat16},
    SafetensorsDType{"F32", 32, DType::float32},
    SafetensorsDType{"F64", 64, DType::float64},
    SafetensorsDType{"C64", 64, std::nullopt},
    SafetensorsDType{"F4", 4, std::nullopt},
    SafetensorsDType{"F6_E2M3", 6, std::nullopt},
    SafetensorsDType{"F6_E3M2", 6, std::nullopt},
    SafetensorsDType{"F8_E4M3", 8, DType::float8_e4m3fn},
    SafetensorsDType{"F8_E4M3FNUZ", 8, std::nullopt},
    SafetensorsDType{"F8_E5M2", 8, DType::float8_e5m2},
    SafetensorsDType{"F8_E5M2FNUZ", 8, std::nullopt},
    SafetensorsDType{"F8_E8M0", 8, std::nullopt},
};

// There is a new one every few months.
inline constexpr SafetensorsDType kOtherF8{"F8_*", 8, std::nullopt};

// Null if there is none of that name.
inline const SafetensorsDType* find_safetensors_dtype(std::string_view name) {
  for (const SafetensorsDType& entry : kSafetensorsDTypes) {
    if (entry.name == name) return &entry;
  }
  return name.starts_with("F8_") ? &kOtherF8 : nullptr;
}

inline const SafetensorsDType& safetensors_dtype(DType dtype) {
  return *std::find_if(kSafetensorsDTypes.begin(), kSafetensorsDTypes.end(),
                       [&](const auto& entry) { return entry.dtype == dtype; });
}

inline constexpr std::string_view kReadSafetensorsDTypes =
    "F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I8 to I64, U8 to U64, BOOL";

}  // namespace lnorm
