#pragma once

#include <cstdint>
#include <vector>

#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/exact_row.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// Statistics of rows that are not computed, as those of batch normalization in evaluation.
struct GivenStatistics {
  std::vector<double> mean;    // empty: 0, by RMS
  std::vector<double> spread;  // rstd, or the variance, 0 or more
  bool is_rstd = false;
  AffineLayout layout;  // which numbers a row has

  double mean_of(std::int64_t row) const { return mean.empty() ? 0 : number(mean, row); }
  double spread_of(std::int64_t row) const { return number(spread, row); }
  double number(const std::vector<double>& numbers, std::int64_t row) const {
    return numbers[numbers.size() == 1 ? 0 : static_cast<std::size_t>(layout.first(row))];
  }
};

// The one element of this row is the mean, but its mean square is larger by the variance: what is exact of a row with these
// statistics. Both are finite.
ExactRow given_row(double mean, double variance, const Formula& formula);

// Every element by itself:
//
//   y = (x - mean) * rstd * weight + bias
//   y = (x - mean) / s * weight + bias     s = sqrt(variance + eps)   or   sqrt(variance) + eps
//
// Accuracy: each y is the exact value of the formula rounded once, as Backend::layer_norm rounds, with its steps. What is not
// finite, and a division by s = 0, act by IEEE's rules; so the elements of a row do not depend on each other.
//
//   x, y     rows x row_length, row-major, as layer_norm takes them
//   formula  eps and where it goes
//   offset   where in their rows x and y begin, if they are parts
//
// Throws std::bad_alloc alone.
void normalize_by(const Backend& backend, const GivenStatistics& given, const RowsIn& x,
                  const RowsOut& y, const Affine& affine, const Formula& formula,
                  std::int64_t offset = 0);

// By these statistics; or if given is null by the rows' own, which computed gets.
inline void normalize(const Backend& backend, const GivenStatistics* given, const RowsIn& x,
                      const RowsOut& y, const Affine& affine, const Formula& formula,
                      const MeanAndRstd& computed) {
  if (given != nullptr) return normalize_by(backend, *given, x, y, affine, formula);
  backend.layer_norm(x, y, affine, formula, computed);
}

}  // namespace lnorm
