#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rows.hpp"

namespace lnorm {

// What inference kernels write of a norm's results y, and the scale:
//
//   amax  = max |y| of a group, from amax_min to amax_max
//   scale = amax / qmax, rounded once to float32, from scale_min to scale_max; at least the smallest float32 unless amax is 0
//   q     = y / scale, rounded once to int8 or a float8, saturating
//
// y is the exact number, so scale and q are each correctly rounded. Where amax is 0, the scale is scale_min, or 1, within its bounds,
// and q is 0. A group that has a y that is not finite has the scale NaN; its q is NaN, or 0 in int8.
//
// [Dettmers et al. 2022, arXiv:2208.07339; scales that are powers of two: OCP Microscaling Formats 1.0]
struct Quantization {
  DType dtype = DType::int8;
  std::int64_t group = 0;  // successive elements of a row that share a scale; 0: all of it
  double qmax = 0;
  double amax_min = 0;
  double amax_max = kInfinity;
  double scale_min = 0;  // float32 numbers, as the next one
  double scale_max = kInfinity;
  bool power_of_two = false;           // a scale is rounded up to one
  DType scale_dtype = DType::float32;  // or float8_e8m0fnu
  bool rounds_y = false;               // before it is divided
  DType rounding = DType::float32;     // of y then, and of the steps of the affine

  // quotient: amax / qmax of a group, rounded to float32. is_zero: amax is 0.
  double scale(double quotient, bool is_zero) const;

  std::int64_t scales(std::int64_t row_length) const { return group == 0 ? 1 : row_length / group; }
};

// The greatest number of q, where qmax is not given.
double default_qmax(DType dtype);

// The largest of some |y| / qmax, rounded to float32. NaN where a y is not finite.
struct LargestQuotient {
  double quotient = 0;
  bool is_zero = true;

  void take(const LargestQuotient& other);

  // core/serialize.hpp calls it.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(quotient, is_zero);
  }
};

// Rows as Backend::layer_norm takes them, quantized. given, scales: statistics and scales that are not computed; the latter one number,
// or numbers with a layout.
class RowQuantizer {
 public:
  // What it refers to must outlive it.
  RowQuantizer(const Backend& backend, const GivenStatistics* given, Affine affine,
               const Formula& formula, const Quantization& quantization,
               const AffineTerm* scales = nullptr, AffineLayout scales_layout = {});

  // stats.scale has quantization.scales() numbers a row. Throws std::bad_alloc alone.
  void quantize(const RowsIn& x, const RowsOut& q, const RowNumbersOut& stats) const;

  // Of each row.
  std::vector<LargestQuotient> largest(const RowsIn& x) const;

 private:
  class Row;

  const Backend& backend_;
  const GivenStatistics* given_;
  std::optional<Affine> rounded_;  // what comes before the last rounding of y, if there is one
  Affine last_;
  Formula formula_;
  const Quantization& quantization_;
  const AffineTerm* scales_;
  AffineLayout scales_layout_;
};

}  // namespace lnorm
