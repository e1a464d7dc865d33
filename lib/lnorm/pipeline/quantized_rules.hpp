#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/diagnosis/judge.hpp"
#include "lnorm/diagnosis/wrong_kernels.hpp"
#include "lnorm/kernel/quantize.hpp"

// What wrong kernels do that quantize: check looks for it, and mutants computes it.
namespace lnorm {

// How a kernel was asked to quantize.
struct AskedQuantization {
  const Quantization& quantization;
  const AffineTerm* given_scale =
      nullptr;  // in the order of the plan's layout; null: scales are computed
};

// What a scale, or a quotient, may be.
struct ScaleInterval {
  double low = 0;
  double high = 0;
  bool has(double value) const { return value >= low && value <= high; }
  // Of what is the larger one.
  void take(const ScaleInterval& other) {
    low = std::max(low, other.low);
    high = std::max(high, other.high);
  }
};

// The numbers of q's dtype.
class QuantizedGrid {
 public:
  explicit QuantizedGrid(DType dtype) : is_int8_(dtype == DType::int8), format_(dtype) {}

  // What rounds to a number, but for its sign: between the points halfway to its neighbors.
  ScaleInterval rounds_to(double q) const;
  double rounded(double v) const { return saturated(format_.rounded(v)); }
  // NaN is 0 in int8.
  double saturated(double v) const;
  // Toward zero, or away from it.
  double truncated(double v) const { return saturated(format_.truncated(v)); }
  double away(double v) const;
  // To nearest, ties away from zero.
  double half_away(double v) const;
  // To nearest; beyond the greatest number it is NaN or infinity.
  double unsaturated(double v) const {
    const double one = format_.rounded(v);
    return std::isinf(one) && !format_.has_infinity() ? kNan : one;
  }

 private:
  bool is_int8_;
  OutputFormat format_;
};

// How a wrong kernel quantizes: what it does instead.
struct QuantizedRule {
  Quantization quantization;
  std::span<const double> amax_of = {};  // whose largest is amax
  std::span<const double> y = {};
  std::span<const double> error = {};
  enum class Last {
    nearest,
    half_away,
    truncated,
    away,
    wraps,
    unsaturated,
    zero
  } last = Last::nearest;
  double end = kInfinity;   // where |q| ends, if that is before the dtype's end
  bool drops_nan = false;   // of the numbers whose largest is amax
  bool multiplies = false;  // the scale that is saved is 1 / scale
  bool has_no_scale = false;
  bool rounds_down = false;          // the scale, to a power of two
  std::int64_t group = 0;            // elements whose largest |y| is a scale's
  std::optional<double> scale = {};  // of all
  bool is_transposed = false;
  double offset = 0;                           // of q
  std::unique_ptr<const RowBounds> kept = {};  // what amax_of, y and error may refer to

  // How many elements at a time have one scale, where so many were asked for.
  std::int64_t step(std::int64_t asked) const { return group > 0 ? std::min(group, asked) : asked; }
  // Of all numbers of a row, those whose largest makes the scale of the group that begins at first. asked: as many have one.
  std::span<const double> part(std::span<const double> all, std::int64_t first,
                               std::int64_t asked) const;
  // The largest size of some numbers; NaN if one is that counts.
  double largest(std::span<const double> numbers) const;
  // The scale that an amax makes. is_zero: amax is 0.
  double scale_of(double amax, bool is_zero) const;
  double saved(double found) const {
    return multiplies ? OutputFormat(DType::float32).rounded(1 / found) : found;
  }
  double result(const QuantizedGrid& grid, double y, double divisor) const;
};

// A row at each step where a wrong kernel may stop, or take the largest element: the exact numbers, and how far off those of a
// right kernel may be by the tree bound. It refers to x.
struct RowOfKernel {
  std::span<const double> x;
  RowBounds results;    // y
  RowBounds unrounded;  // y that is not rounded, if its rounding is asked for
  RowBounds xhat;
  RowBounds before_bias;
  RowBounds alone;         // results of x without the residual, if there is one
  double scale_of_tensor;  // what the largest |y| of all rows makes
  double offset = 1;       // of a kernel that adds one to q

  RowOfKernel(const JudgeSetting& setting, const AffineNumbers& affine, const Quantization& asked,
              std::span<const double> its_x, std::span<const double> x_alone,
              const std::optional<GivenNumbers>& given, double its_scale_of_tensor);
};

// y of a row, and how far off a kernel's may be, before the quotient; NaN if x is not finite.
RowBounds results_of(const JudgeSetting& setting, const AffineNumbers& affine, DType rounding,
                     bool rounds_y, std::span<const double> x,
                     const std::optional<GivenNumbers>& given, bool is_measured = false);

// How a kernel quantizes that does what was asked for. It refers to the row.
inline QuantizedRule asked_rule(const Quantization& asked, const RowOfKernel& row) {
  return {asked, row.results.y, row.results.y, row.results.bound};
}

// What decides whether a wrong kernel is another one than was asked for: options and shapes, no values.
struct QuantizedContext {
  const Quantization& quantization;
  std::int64_t rows = 0;
  std::int64_t row_length = 0;
  std::int64_t shared_scales = 0;  // as of Plan
  bool is_given = false;           // no scale is computed
  bool has_saved_scales = false;
  bool is_written = false;  // as of KernelContext: what a kernel saves is known
  bool has_nan = false;     // some y is not finite; false where not known
  bool has_residual = false;
  bool has_weight = false;
  bool has_bias = false;
};

// A row of quantized_kernels(), with a number for its {}.
struct NamedQuantizedKernel {
  std::string id;
  std::string words;
  std::string options;
  bool is_other;  // than was asked for
  double parameter;
  void (*change)(const RowOfKernel& row, double parameter, QuantizedRule& rule);

  // It refers to the row.
  QuantizedRule rule(const Quantization& asked, const RowOfKernel& row) const {
    QuantizedRule rule = asked_rule(asked, row);
    change(row, parameter, rule);
    return rule;
  }
};

// Those that are chosen, in the table's order. choose: empty for all.
std::vector<NamedQuantizedKernel> named_quantized_kernels(const QuantizedContext& context,
                                                          const ChooseKernel& choose);

}  // namespace lnorm
