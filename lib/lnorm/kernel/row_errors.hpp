#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "lnorm/kernel/rows.hpp"

// What a check asks of every row, in doubles and in SIMD. None of it decides anything: what is near a bound is looked at
// again, in the same way on every machine.
namespace lnorm {

struct Backend;

// What all elements of a row have in common, in y_i = (x_i - center) inverse weight_i + bias_i, and in the bound of
// what a kernel's y_i may be off by (docs/numbers.md, "What rounding explains").
struct RowLine {
  double center = 0;
  double center_error = 0;
  double inverse = 1;       // 1 / s
  double inverse_high = 1;  // 1 / the smallest s that the kernel may have
  double unit = 0;          // unit roundoff
  double x_unit = 0;        // relative error of x itself
  double affine_unit = 0;   // relative error of the product with weight, and of the sum with bias
  double smallest = 0;      // smallest normal number
  double weight_unit =
      0;  // error of the weight without the 1 that is added to it, relative to that
  double most = std::numeric_limits<double>::infinity();  // of |xhat|, whatever the sums lose
};

// Half an ulp of the output is the power of two below it, times half_unit, and at least smallest_half.
struct LastRounding {
  double half_unit = 0;
  double smallest_half = 0;
  bool is_exact_known =
      false;  // take what is known of y to the last bit, not what is computed here
};

struct RowSizes {
  double mean = 0;
  double mean_abs = 0;
  double max_abs = 0;
  double squares = 0;  // sum of (x - mean)^2; infinite or NaN if an element is not finite
};

// Numbers of one row, all of the same length.
struct ScreenedRow {
  std::int64_t count = 0;
  const double* x = nullptr;
  const double* actual = nullptr;
  const double* exact = nullptr;
  const double* weight = nullptr;
  const double* bias = nullptr;
};

// Sums over a row: e is what the output is off by, w the weight, p its product with xhat.
struct RowScreen {
  bool exceeds = false;    // an element may be off by more than a limit times its bound
  bool is_finite = false;  // all outputs, and all exact ones
  std::int64_t equal = 0;  // elements that are the exact ones
  double ww = 0;
  double wp = 0;
  double pp = 0;
  double ew = 0;
  double ep = 0;
};

// The elements of the one row as doubles, without low parts, in the buffer.
std::span<const double> decode(const Backend& backend, const RowsIn& row,
                               std::vector<double>& buffer);

// about_zero: about 0, not about the mean.
RowSizes row_sizes(const Backend& backend, const double* x, std::int64_t count, bool about_zero);

// limit: how much of its bound no element may be off by. Requires a line whose |xhat| does not come near to its most.
RowScreen screen_row(const Backend& backend, const RowLine& line, double limit,
                     const LastRounding& rounding, const ScreenedRow& row);

}  // namespace lnorm
