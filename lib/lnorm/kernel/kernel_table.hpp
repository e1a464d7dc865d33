#pragma once

#include <cstdint>

#include "lnorm/core/moments.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/gradient_statistics.hpp"
#include "lnorm/kernel/range.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/statistics.hpp"
#include "lnorm/kernel/triple_sum.hpp"

namespace lnorm {

struct RowSetting;  // row_normalizer.hpp

// Decides the results that the write passes leave open.
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

// Rows whose terms of a column add up in doubles: few, so that little is lost. Such sums add up in double-doubles.
inline constexpr std::int64_t kMaxGradientRows = 8;

// The same for gradients.
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

// What a SIMD target, or the portable code, does with the elements: see passes-inl.hpp. A part is of one row;
// offset is where in the row it begins.
struct KernelTable {
  // An element goes through at most chunk_growth(n, lanes) additions on its way into a chunk's sum.
  std::int64_t lanes;

  Sums (*narrow_sums)(const RowsIn& part, double center);
  Sums (*wide_sums)(const RowsIn& part, double center);

  // Write every result that the statistics' bounds decide, and what the resolver says of the others.
  void (*narrow_write)(const RowsIn& part, const NarrowStatistics& statistics, const Affine& affine,
                       std::int64_t offset, const RowsOut& y, const Resolver& resolver);
  void (*wide_write)(const RowsIn& part, const WideStatistics& statistics, const Affine& affine,
                     std::int64_t offset, const RowsOut& y, const Resolver& resolver);

  // Many short rows at once. False where there is no code for the dtypes or the length: nothing is done.
  bool (*short_rows)(const RowSetting& setting, const RowsIn& x, const RowsOut& y);

  // Takes one step for count elements, in place (affine_steps.hpp).
  void (*take_step)(const AffineStep& step, const RowsOut& y, std::int64_t count,
                    std::int64_t offset);

  // The backward pass of a row or a part of it; narrow ones write up to kMaxGradientRows, with a gradient each. dx.data
  // may be null, and so may be the columns, which begin where the part does: then that is left out.
  std::int64_t gradient_lanes;  // as lanes
  GradientSums (*narrow_gradient_sums)(const GradientPart& part, double center,
                                       const AffineTerm& weight);
  GradientSums (*wide_gradient_sums)(const GradientPart& part, double center,
                                     const AffineTerm& weight);
  void (*narrow_gradient_write)(const GradientPart& part, const NarrowGradient* gradients,
                                const AffineTerm& weight, const RowsOut& dx,
                                const NarrowColumns* columns, const GradientResolver& resolver);
  void (*wide_gradient_write)(const GradientPart& part, const WideGradient& gradient,
                              const AffineTerm& weight, const RowsOut& dx,
                              const WideColumns* columns, const GradientResolver& resolver);

  // Sums of two rows without 64-bit integers, and a row that is rounded (add.hpp).
  void (*add)(const RowsIn& a, const RowsIn& b, const RowsOut& sum);
  void (*round_row)(const RowsIn& x, const RowsOut& y);

  // For moments: the range of a row, and all moments of rows that plain sums decide (plain_moments.hpp), of a dtype that may
  // be plain. decided: for each row whether they do.
  Range (*range)(const RowsIn& row);
  void (*plain_moments)(const RowsIn& x, std::int64_t freedom, Moments* moments, bool* decided);
  TripleSum (*triple_sum)(const RowsIn& part);  // without low parts

  // For softmax (kernel/softmax.cpp), of a row without low parts: the largest element, NaN if an element is; the results
  // in a dtype narrower than float64, and those in float64. max is finite, scale is positive, from 2^-300 to 2^300.
  double (*largest)(const RowsIn& row);
  void (*narrow_softmax)(const RowsIn& row, double max, double scale, const RowsOut& y,
                         const Resolver& resolver);
  void (*wide_softmax)(const RowsIn& row, double max, const RowsOut& y, const Resolver& resolver);
};

}  // namespace lnorm
