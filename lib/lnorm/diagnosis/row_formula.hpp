#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/row_errors.hpp"

// What rounding can do to a kernel's numbers: the model of docs/numbers.md, "What rounding explains". And by it one row by a formula of
// the form
//
//   y_i = (x_i - center) / s * weight_i + bias_i
//
// in float64, and how far off a kernel may be that computes it: E_y of docs/numbers.md without the last rounding.
namespace lnorm {

// The arithmetic that a kernel computes in.
struct Arithmetic {
  double unit;             // u, the unit roundoff
  double smallest_normal;  // t
  double greatest;
  DType dtype;
};
inline Arithmetic arithmetic_of(DType dtype) {
  const FloatFormat& format = float_format(dtype);
  return {std::ldexp(1.0, -format.precision),
          std::ldexp(1.0, format.least_exponent + format.precision - 1), format.greatest, dtype};
}

// g: what a sum of n terms loses that is added pairwise, by vectors or warps, relatively to the sum of their magnitudes. depth: the
// additions that a term goes through, where they are known. Of fewer than 4 terms as of 4: a kernel that folds mean and s into x a + b
// rounds as often. [Higham 2002, 4.2; Higham and Mary 2019, SIAM J. Sci. Comput. 41(5)]
inline double summation_error(double n, double unit,
                              const std::optional<std::int64_t>& depth = {}) {
  if (depth) return static_cast<double>(*depth) * unit;
  const double h = std::min(std::max(n, 4.0), std::log2(n) + 8);
  return std::min(h, 4 * std::sqrt(h)) * unit;
}

// The spacing of a float dtype's numbers, and rounding to it.
class OutputFormat {
 public:
  explicit OutputFormat(DType dtype) : OutputFormat(dtype, float_format(dtype)) {}

  // What tensor cores make of float32: of its bits 10 of the fraction are left.
  static OutputFormat tf32() {
    constexpr double kGreatest = 0x1.ffcp127;
    return {DType::float32, {.precision = 11, .least_exponent = -136, .greatest = kGreatest}};
  }

  OutputFormat(DType dtype, const FloatFormat& format)
      : dtype_(dtype),
        format_(format),
        half_unit_(std::ldexp(1.0, -format_.precision)),
        smallest_half_(std::ldexp(1.0, format_.least_exponent - 1)) {}

  DType dtype() const noexcept { return dtype_; }
  int precision() const noexcept { return format_.precision; }
  double greatest() const noexcept { return format_.greatest; }
  double half_unit() const noexcept { return half_unit_; }  // half an ulp of 1 to 2
  double smallest_half() const noexcept { return smallest_half_; }

  // Half an ulp at v, which is finite; of a float64 at least the smallest normal float64.
  double half_ulp(double v) const noexcept {
    constexpr std::uint64_t kExponent = 0x7ff0'0000'0000'0000;
    const auto power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(v) & kExponent);
    const double half = power * half_unit_;
    return half > smallest_half_ ? half : smallest_half_;
  }

  bool has_infinity() const noexcept { return format_.has_infinity; }

  // Whether a finite number of this size rounds to infinity.
  bool overflows(double size) const noexcept {
    return size >= format_.greatest + half_ulp(format_.greatest);
  }

  // v rounded to nearest, ties to even.
  double rounded(double v) const noexcept {
    if (rounds_as_float()) return static_cast<float>(v);
    // The steps of a sum with it are 1.
    constexpr double kInteger = 0x1.8p52;
    return to_grid(v, [](double q) { return std::copysign((q + kInteger) - kInteger, q); });
  }

  // Rounds each of them so.
  void round(std::span<double> values) const noexcept {
    if (rounds_as_float()) {
      for (double& v : values) v = static_cast<float>(v);
    } else {
      for (double& v : values) v = rounded(v);
    }
  }

  // v rounded toward zero, as a kernel does that cuts bits off.
  double truncated(double v) const noexcept {
    return to_grid(v, [](double q) { return std::trunc(q); });
  }

 private:
  bool rounds_as_float() const noexcept {
    constexpr int kFloat = float_format(DType::float32).precision;
    return dtype_ == DType::float32 && format_.precision == kFloat;
  }

  template <class ToInteger>
  double to_grid(double v, ToInteger to_integer) const noexcept {
    if (dtype_ == DType::float64 || !std::isfinite(v) || v == 0) return v;
    const double ulp = 2 * half_ulp(v);
    const double on_grid = to_integer(v / ulp) * ulp;
    return std::fabs(on_grid) > format_.greatest ? std::copysign(INFINITY, v) : on_grid;
  }

  DType dtype_;
  FloatFormat format_;
  double half_unit_;
  double smallest_half_;
};

// Rounds a number that a kernel rounds as well, and has within an error: returns a whole ulp where the kernel may round to
// the other side, or else 0.
inline double keep_in(const OutputFormat& format, double& value, double error) {
  const double exact = value;
  value = format.rounded(exact);
  const double half = format.half_ulp(exact);
  return half - std::fabs(exact - value) <= error ? 2 * half : 0;
}

// The same, however large the error is: returns how far off a kernel may be then.
inline double round_in(const OutputFormat& format, double& value, double error) {
  const double exact = value;
  const double reach = error * (1 + 0x1p-40);
  value = format.rounded(exact);
  if (!std::isfinite(value)) return 0;
  return std::max(std::fabs(format.rounded(exact - reach) - value),
                  std::fabs(format.rounded(exact + reach) - value));
}

inline bool are_finite(std::span<const double> numbers) {
  // All are counted: a loop that may end early takes no vectors.
  return std::count_if(numbers.begin(), numbers.end(),
                       [](double one) { return !std::isfinite(one); }) == 0;
}

// What the kernel is known to do.
struct KernelModel {
  Arithmetic arithmetic;
  std::optional<std::int64_t> depth;  // of its sums
  bool rounds_x = false;              // x is a sum, or wider than the arithmetic
  bool adds_one = false;              // to the weight
  bool rounds_weight = false;         // before that: it is wider than the arithmetic
};

// Statistics of a row that a kernel is given. An rstd stands for the variance 1 / rstd^2 without eps.
struct GivenNumbers {
  double mean = 0;
  double variance = 0;
};

// Numbers of a row, or of some of its elements.
struct RowStatistics {
  double mean = 0;
  double variance = 0;  // by the formula's ddof; of RMS the mean of squares
  double mean_abs = 0;
  double max_abs = 0;     // of x
  double count = 0;       // what sums are divided by
  bool is_given = false;  // mean and variance are not sums
};

// x is finite. formula: of the mean and the variance, unless they are given.
RowStatistics statistics_of(std::span<const double> x, const Formula& formula,
                            const std::optional<GivenNumbers>& given = {});

// What sums one after another lose of a row, at worst: sum_losses.hpp.
struct SumLosses {
  double mean = 0;
  double variance = 0;
  // Of the sums of g and of g xhat in dx, in parts of the sums of their magnitudes.
  double g = 0;
  double products = 0;
};

// s, or what stands in its place.
double divisor_of(double variance, const Formula& formula);

// With eps in max(): where the divisor is not eps.
double variance_of(double divisor, const Formula& formula);

// How far off mean, variance and s may be.
struct StatisticErrors {
  double mean = 0;
  double variance = 0;
  double s = 0;
  double s_low = 0;          // the smallest s that the kernel may have
  bool is_in_range = false;  // of the arithmetic: sums, squares and |x| / s
  bool is_bounded = false;   // so it is, and s is not three times what the kernel may have
  bool may_divide = true;    // s is no 0 in the arithmetic, which would make NaN and infinity
};
// By the tree bound, and so many times the losses beside it.
inline constexpr double kLossFactor = 4;
StatisticErrors errors_of(const RowStatistics& row, const Formula& formula,
                          const KernelModel& kernel, const SumLosses& losses = {});

// Fills the errors of s, and is_bounded, from those of mean and variance and from is_in_range.
void carry_to_divisor(const RowStatistics& row, const Formula& formula,
                      const Arithmetic& arithmetic, StatisticErrors& errors);

// Mean and 1 / s as a kernel has them that keeps them in a dtype. Returns whether there is such an s.
bool keep_statistics_in(DType dtype, RowStatistics& row, double& s, StatisticErrors& errors);

RowLine line_of(const RowStatistics& row, double s, const StatisticErrors& errors,
                const KernelModel& kernel);

// A number, and how far off a kernel's may be.
struct BoundedNumber {
  double value;
  double error;
};

// (x - center) / s of an element.
inline BoundedNumber xhat_of(const RowLine& line, double x) noexcept {
  const double d = x - line.center;
  const double size = std::fabs(d);
  const double xhat = d * line.inverse;
  const double d_error = line.center_error + line.unit * size + line.x_unit * std::fabs(x);
  const double error = d_error * line.inverse_high + size * (line.inverse_high - line.inverse) +
                       line.unit * std::fabs(xhat) + line.smallest;
  // No kernel's |xhat| is beyond the root of n by more than its own rounding.
  const double most = line.most + std::fabs(xhat) +
                      3 * line.unit * (std::fabs(x) + std::fabs(line.center)) * line.inverse_high;
  return {xhat, std::min(error, most)};
}

// The same times weight, plus bias.
inline BoundedNumber y_of(const RowLine& line, double x, double weight, double bias) noexcept {
  const auto [xhat, error] = xhat_of(line, x);
  const double product = xhat * weight;
  return {product + bias,
          std::fabs(weight) * error + line.weight_unit * (std::fabs(weight) + 1) * std::fabs(xhat) +
              line.affine_unit * (std::fabs(product) + std::fabs(bias)) + line.smallest};
}

// weight and bias of every element.
struct AffineNumbers {
  std::vector<double> weight;
  std::vector<double> bias;

  void scale(double by) {
    for (std::vector<double>* const some : {&weight, &bias}) {
      for (double& number : *some) number *= by;
    }
  }
};

// Fills y and error for a row.
void fill_line(const RowLine& line, std::span<const double> x, const AffineNumbers& affine,
               std::vector<double>& y, std::vector<double>& error);

// Fills them by a formula that may round xhat, or its product with weight, to the output as well. Adds a whole ulp where a
// kernel may round to the other side.
void fill_rounded_line(const RowLine& line, const Rounding& rounding, const OutputFormat& output,
                       std::span<const double> x, const AffineNumbers& affine,
                       std::vector<double>& y, std::vector<double>& error);

}  // namespace lnorm
