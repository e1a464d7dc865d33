#pragma once

#include <cstdint>

#include "lnorm/core/moments.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/features.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/gradient_statistics.hpp"
#include "lnorm/kernel/range.hpp"
#include "lnorm/kernel/row_errors.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

struct RowSetting;  // row_normalizer.hpp

// Decides the results that the kernel table leaves undecided.
class Resolver {
 public:
  Resolver() = default;
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // y of element x, which is the index-th of its row: the correctly rounded number.
  virtual double resolve(std::int64_t index, Number x) const = 0;

 protected:
  ~Resolver() = default;
};

// Decides those of gradients.
class GradientResolver {
 public:
  GradientResolver() = default;
  GradientResolver(const GradientResolver&) = delete;
  GradientResolver& operator=(const GradientResolver&) = delete;

  // dx of element x, the index-th of a row, which is counted from the first one that is written: the correctly rounded
  // number.
  virtual double resolve(std::int64_t row, std::int64_t index, Number x, Number dy) const = 0;

 protected:
  ~GradientResolver() = default;
};

// Where a part of a row begins: its first element, and the number that weight and bias have there.
struct RowPlace {
  std::int64_t element;
  std::int64_t number;
};

// Results of a row from its first one on, and what they are multiplied by, both rounded to float, with room for a vector behind them.
struct QuantizedRow {
  const float* y;
  const float* inverse;
  bool one_inverse;  // for all
  std::int64_t first;
  std::int64_t count;
};

// What a SIMD target, or the portable code, does with the elements, in two tables that are compiled apart. A part is of
// one row; offset is where in the row it begins.

// Layer normalization: row_kernels-inl.hpp.
struct RowKernels {
  // An element goes through at most chunk_growth(n, lanes) additions on its way into a chunk's sum.
  std::int64_t lanes;

  Sums (*double_sums)(const RowsIn& part, double center);
  Sums (*double_double_sums)(const RowsIn& part, double center);

  // Write every result that the statistics' bounds decide, and what the resolver says of the others. Where elements repeat a
  // number of the affine's layout, all of the part have one.
  void (*double_write)(const RowsIn& part, const DoubleStatistics& statistics, const Affine& affine,
                       const RowPlace& place, const RowsOut& y, const Resolver& resolver);
  void (*double_double_write)(const RowsIn& part, const DoubleDoubleStatistics& statistics,
                              const Affine& affine, const RowPlace& place, const RowsOut& y,
                              const Resolver& resolver);

  // Many short rows at once. False where there is no code for the dtypes or the length: nothing is done.
  bool (*short_rows)(const RowSetting& setting, const RowsIn& x, const RowsOut& y);

  // Takes one step for count elements, in place (affine_steps.hpp).
  void (*take_step)(const AffineStep& step, const RowsOut& y, std::int64_t count,
                    std::int64_t offset);
};

// All else: other_kernels-inl.hpp.
struct OtherKernels {
  // The backward pass of a row or a part of it; in doubles of up to kMaxGradientRows: their sums, their gradients from these, and
  // their results by the gradients from first on. dx.data
  // may be null, and so may be columns.first, that of the part's first column: then that is left out.
  std::int64_t gradient_lanes;  // as lanes
  void (*double_gradient_sums)(const GradientPart& rows, const AffineTerm& weight,
                               GradientRowSums& sums);  // about sums.center
  void (*double_gradients)(const GradientRule& rule, const GradientRowSums& sums, std::int64_t rows,
                           const SavedStatistics* saved, DoubleGradients& gradients);
  GradientSums (*double_double_gradient_sums)(const GradientPart& part, double center,
                                              const AffineTerm& weight);
  void (*double_gradient_write)(const GradientPart& part, const DoubleGradients& gradients,
                                std::int64_t first, const AffineTerm& weight, const RowsOut& dx,
                                const ColumnSums& columns, const GradientResolver& resolver);
  void (*double_double_gradient_write)(const GradientPart& part,
                                       const DoubleDoubleGradient& gradient,
                                       const AffineTerm& weight, const RowsOut& dx,
                                       const ColumnSums& columns, const GradientResolver& resolver);

  // Sums of two rows without 64-bit integers, and a row that is rounded (add.hpp).
  void (*add)(const RowsIn& a, const RowsIn& b, const RowsOut& sum);
  void (*round_row)(const RowsIn& x, const RowsOut& y);

  // Rounds results times their inverses to int8 or a float8, saturating (quantize.hpp); 1 / inverse is from 2^-100 to 2^100. The
  // resolver decides what floats leave undecided.
  void (*quantize)(const QuantizedRow& row, const RowsOut& q, const Resolver& resolver);

  // Moments need these: the range of a row, and all moments of rows that plain sums decide
  // (plain_moments.hpp), of a dtype that may be plain. decided: for each row whether they do.
  Range (*range)(const RowsIn& row);
  void (*plain_moments)(const RowsIn& x, std::int64_t freedom, Moments* moments, bool* decided);
  TripleSum (*triple_sum)(const RowsIn& part);  // without low parts

  // Softmax (kernel/softmax.cpp) needs these, of a row without low parts: the largest element, NaN
  // if an element is; the results in a dtype narrower than float64, and those in float64. max is
  // finite, scale is positive, from 2^-300 to 2^300.
  double (*largest)(const RowsIn& row);
  void (*double_softmax)(const RowsIn& row, double max, double scale, const RowsOut& y,
                         const Resolver& resolver);
  void (*double_double_softmax)(const RowsIn& row, double max, const RowsOut& y,
                                const Resolver& resolver);

  // For checks: row_errors.hpp.
  void (*decode)(const RowsIn& row, double* to);
  RowSizes (*row_sizes)(const double* x, std::int64_t count, bool about_zero);
  RowScreen (*screen_row)(const RowLine& line, double limit, const LastRounding& rounding,
                          const ScreenedRow& row);

  // Adds the features from the first on, over all rows of x. leaves_out: what is not finite.
  void (*add_features)(const RowsIn& x, std::int64_t first, std::int64_t count, bool leaves_out,
                       FeatureStrip& strip);
};

struct KernelTable : RowKernels, OtherKernels {};

}  // namespace lnorm
