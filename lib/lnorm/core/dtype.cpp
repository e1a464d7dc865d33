#include "lnorm/core/dtype.hpp"

#include <algorithm>
#include <array>

#include "lnorm/core/dtype_table.hpp"

namespace lnorm {

namespace {

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

std::string_view name(DType dtype) { return dtype_row(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const auto& [synonym, dtype] : kSynonyms) {
    if (name == synonym) return dtype;
  }
  const auto* const found = std::find_if(kDTypes.begin(), kDTypes.end(),
                                         [&](const DTypeRow& row) { return row.name == name; });
  // No file has a pair.
  if (found == kDTypes.end() || found->dtype == DType::float64_pair) return std::nullopt;
  return found->dtype;
}

std::size_t item_size(DType dtype) { return dtype_row(dtype).size; }

bool is_floating(DType dtype) { return dtype_row(dtype).kind == DTypeKind::floating; }

bool is_float8(DType dtype) { return is_floating(dtype) && item_size(dtype) == 1; }

}  // namespace lnorm
