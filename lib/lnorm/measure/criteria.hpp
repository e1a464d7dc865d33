#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/dtype_table.hpp"

// What two tensors must be like to agree.
namespace lnorm {

// |actual - expected| <= atol + rtol * |expected|, in float64; of 64-bit integers the difference is exact.
struct Tolerance {
  double rtol = 0;
  double atol = 0;

  bool operator==(const Tolerance&) const = default;
};

// The tolerance of torch.testing.assert_close for a dtype; the looser values of two dtypes.
inline Tolerance default_tolerance(DType actual, DType expected) {
  const DTypeRow& a = dtype_row(actual);
  const DTypeRow& b = dtype_row(expected);
  return {std::max(a.rtol, b.rtol), std::max(a.atol, b.atol)};
}

// How many elements may be out of bounds: so many, or so many in a hundred.
struct MismatchLimit {
  double value = 0;
  bool is_percentage = false;

  bool allows(std::int64_t mismatched, std::int64_t elements) const noexcept {
    const auto found = static_cast<double>(mismatched);
    if (!is_percentage) return found <= value;
    // 0.57 is a little less in binary: 57 of 10000 are 0.57%.
    return 100 * found <= value * static_cast<double>(elements) * (1 + 0x1p-50);
  }

  bool operator==(const MismatchLimit&) const = default;
};

// All that are there must hold. What is not finite is beyond them: a pair passes if both are the same infinity, or
// NaN if NaN equals NaN; or if actual is the infinity, or for want of one the NaN, to which expected rounds in the actual dtype. One that
// does not pass makes the tensors differ, whatever the criteria are.
struct Criteria {
  // Bounds of each element. An element that equals the expected one is within them.
  std::optional<Tolerance> tolerance = {};
  std::optional<double> max_ulp = {};
  std::optional<double> max_row_ulp = {};  // in ulp of the greatest |expected| of the row
  std::optional<double> max_abs = {};
  std::optional<double> baseline =
      {};  // as max_abs: so many times what another kernel is off at most
  std::optional<MismatchLimit> max_mismatched = {};  // nothing: no element may be out of bounds

  // Bounds of the errors of all pairs together of which both are finite (ErrorStats); these hold where there
  // is no such pair.
  std::optional<double> max_mean_abs = {};
  std::optional<double> max_rmse = {};
  std::optional<double> min_cosine = {};
  std::optional<double> min_sqnr = {};  // in dB

  bool equal_nan = true;

  bool bounds_elements() const noexcept {
    return tolerance || max_ulp || max_row_ulp || max_abs || baseline;
  }
  bool bounds_all_together() const noexcept {
    return max_mean_abs || max_rmse || min_cosine || min_sqnr;
  }

  bool operator==(const Criteria&) const = default;
};

// finite: that no pair fails because NaN or infinity stands against another value.
enum class Criterion {
  finite,
  tolerance,
  max_ulp,
  max_row_ulp,
  max_abs,
  baseline,
  max_mismatched,
  max_mean_abs,
  max_rmse,
  min_cosine,
  min_sqnr,
};
std::string_view name(Criterion criterion);

}  // namespace lnorm
