#include "lnorm/measure/criteria.hpp"

#include <algorithm>
#include <cstddef>

#include "lnorm/core/dtype_table.hpp"

namespace lnorm {

Tolerance default_tolerance(DType actual, DType expected) {
  const DTypeRow& a = dtype_row(actual);
  const DTypeRow& b = dtype_row(expected);
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
