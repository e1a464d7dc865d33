#include "lnorm/core/dtype.hpp"

#include <algorithm>
#include <array>

namespace lnorm {

namespace {

// In the order of DType, of those that files have.
constexpr std::array<std::string_view, 15> kNames{
    "bool",   "int8",          "int16",       "int32",   "int64",    "uint8",   "uint16", "uint32",
    "uint64", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"};
static_assert(kNames.size() == static_cast<std::size_t>(DType::float64) + 1);

// As PyTorch, NumPy, C and people call them.
constexpr std::array<std::pair<std::string_view, DType>, 13> kSynonyms{{{"f16", DType::float16},
                                                                        {"fp16", DType::float16},
                                                                        {"half", DType::float16},
                                                                        {"f2", DType::float16},
                                                                        {"bf16", DType::bfloat16},
                                                                        {"f32", DType::float32},
                                                                        {"fp32", DType::float32},
                                                                        {"float", DType::float32},
                                                                        {"f4", DType::float32},
                                                                        {"f64", DType::float64},
                                                                        {"fp64", DType::float64},
                                                                        {"double", DType::float64},
                                                                        {"f8", DType::float64}}};

}  // namespace

std::string_view name(DType dtype) {
  if (dtype == DType::float64_pair) return "float64_pair";
  return kNames[static_cast<std::size_t>(dtype)];
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const auto& [synonym, dtype] : kSynonyms) {
    if (name == synonym) return dtype;
  }
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<DType>(found - kNames.begin());
}

std::size_t item_size(DType dtype) {
  if (dtype == DType::float64_pair) return 2 * sizeof(double);
  return visit(dtype, [](auto element) { return sizeof(element); });
}

bool is_floating(DType dtype) { return dtype >= DType::float8_e4m3fn; }

bool is_float8(DType dtype) { return dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2; }

}  // namespace lnorm
