#include "lnorm/measure/criteria.hpp"

#include <algorithm>
#include <cstddef>

namespace lnorm {

namespace {

Tolerance default_tolerance(DType dtype) {
  switch (dtype) {
    case DType::float8_e4m3fn:  // torch.testing has none: an ulp of 1
      return {0.125, 1e-5};
    case DType::float8_e5m2:
      return {0.25, 1e-5};
    case DType::bfloat16:
      return {1.6e-2, 1e-5};
    case DType::float16:
      return {1e-3, 1e-5};
    case DType::float32:
      return {1.3e-6, 1e-5};
    case DType::float64:
      return {1e-7, 1e-7};
    default:
      return {0, 0};
  }
}

}  // namespace

Tolerance default_tolerance(DType actual, DType expected) {
  const Tolerance a = default_tolerance(actual);
  const Tolerance b = default_tolerance(expected);
  return {std::max(a.rtol, b.rtol), std::max(a.atol, b.atol)};
}

bool MismatchLimit::allows(std::int64_t mismatched, std::int64_t elements) const noexcept {
  const auto found = static_cast<double>(mismatched);
  if (!is_percentage) return found <= value;
  // 0.57 is a little less in binary: 57 of 10000 are 0.57%.
  return 100 * found <= value * static_cast<double>(elements) * (1 + 0x1p-50);
}

std::string_view name(Criterion criterion) {
  constexpr std::string_view kNames[] = {"finite",   "tolerance",      "max_ulp",
                                         "max_abs",  "max_mismatched", "max_mean_abs",
                                         "max_rmse", "min_cosine",     "min_sqnr"};
  return kNames[static_cast<std::size_t>(criterion)];
}

}  // namespace lnorm
