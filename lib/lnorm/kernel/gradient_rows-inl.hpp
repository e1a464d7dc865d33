// Some rows of the backward pass in doubles: their sums, and what their gradients are made of (gradient_statistics.hpp).

#if defined(LNORM_KERNEL_GRADIENT_ROWS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef LNORM_KERNEL_GRADIENT_ROWS_INL_HPP_
#undef LNORM_KERNEL_GRADIENT_ROWS_INL_HPP_
#else
#define LNORM_KERNEL_GRADIENT_ROWS_INL_HPP_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/gradient_statistics.hpp"
#include "lnorm/kernel/join_lanes-inl.hpp"
#include "lnorm/kernel/simd-inl.hpp"
#include "lnorm/kernel/transpose-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lnorm {
namespace HWY_NAMESPACE {
namespace {

static_assert(kMaxGradientRows % kWidth == 0);

// How far ahead the sums read memory, in bytes.
constexpr std::int64_t kAhead = 4096;

// Five sums at a time, each in several vectors.
constexpr std::int64_t kGradientVectors = 4;
constexpr std::int64_t kGradientLanes = kGradientVectors * kWidth;

// Calls use(T{}) where x and dy are both of T, which load_floats<T> can load. Returns whether they are.
template <class Use>
HWY_INLINE bool with_pairs_of_floats(const GradientPart& part, Use use) {
  return is_native(part.dy, part.x.dtype) && with_floats(part.x, use);
}

template <bool has_weight>
HWY_INLINE V weighted(V dy, const double* weight, std::int64_t i) {
  if constexpr (has_weight) return dy * hn::LoadU(kDoubles, weight + i);
  return dy;
}

// The lanes of the sums over a row. Those of x have to be good, because x-hat is in every term of a column: an element
// goes through two additions that round, and what later ones lose is kept. The others add up the sums of chunks, and
// keep what that loses.
struct GradientLanes {
  CompensatedSum x;
  CompensatedSum x_squares;
  CompensatedSum g;
  CompensatedSum gx;
  V g_squares;

  HWY_INLINE void clear() {
    for (CompensatedSum* const sum : {&x, &x_squares, &g, &gx}) sum->clear();
    g_squares = hn::Zero(kDoubles);
  }
  HWY_INLINE void add_x(const V (&d)[kGradientVectors]) {
    static_assert(kGradientVectors == 4);
    x.add((d[0] + d[1]) + (d[2] + d[3]));
    x_squares.add(hn::MulAdd(d[1], d[1], d[0] * d[0]) + hn::MulAdd(d[3], d[3], d[2] * d[2]));
  }
};

// The sums of g over a chunk.
struct GradientChunk {
  V g[kGradientVectors];
  V gx[kGradientVectors];
  V g_squares[kGradientVectors];

  HWY_INLINE void clear() {
    for (std::int64_t v = 0; v < kGradientVectors; ++v) {
      g[v] = gx[v] = g_squares[v] = hn::Zero(kDoubles);
    }
  }
  HWY_INLINE void add(std::int64_t v, V term, V d) {
    g[v] = g[v] + term;
    gx[v] = hn::MulAdd(term, d, gx[v]);
    g_squares[v] = hn::MulAdd(term, term, g_squares[v]);
  }
  static HWY_INLINE V fold(const V (&lanes)[kGradientVectors]) {
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  }
  HWY_INLINE void add_to(GradientLanes& row) const {
    row.g.add(fold(g));
    row.gx.add(fold(gx));
    row.g_squares = row.g_squares + fold(g_squares);
  }
};

// Adds up to a chunk of elements of x, less the center, and of dy.
template <bool has_weight, class X, class Dy>
HWY_INLINE void add_pairs(const X& x, const Dy& dy, const double* weight, std::int64_t n,
                          GradientLanes& row) {
  GradientLanes lanes = row;
  GradientChunk chunk;
  chunk.clear();
  std::int64_t i = 0;
  for (; i + kGradientLanes <= n; i += kGradientLanes) {
    V d[kGradientVectors];
    x.read_ahead(i);
    dy.read_ahead(i);
    for (std::int64_t v = 0; v < kGradientVectors; ++v) {
      const std::int64_t at = i + v * kWidth;
      d[v] = x(at);
      chunk.add(v, weighted<has_weight>(dy(at), weight, at), d[v]);
    }
    lanes.add_x(d);
  }
  if (i < n) {
    x.read_ahead(i);
    dy.read_ahead(i);
    V d[kGradientVectors];
    for (std::int64_t v = 0; v < kGradientVectors; ++v, i += kWidth) {
      d[v] = hn::Zero(kDoubles);
      if (i >= n) continue;
      const auto mask = mask_of(kDoubles, n - i);
      d[v] = hn::IfThenElseZero(mask, x(i));
      const V g = weighted<has_weight>(hn::IfThenElseZero(mask, dy(i)), weight, i);
      chunk.add(v, hn::IfThenElseZero(mask, g), d[v]);
    }
    lanes.add_x(d);
  }
  chunk.add_to(lanes);
  row = lanes;
}

// The lanes of row r. T: what x and dy are of, after which so many elements can be read as a vector has; double: something else.
template <class T, bool has_weight>
HWY_INLINE GradientLanes lanes_of(const GradientPart& part, std::int64_t r, double center,
                                  const AffineTerm& weight) {
  const std::int64_t n = part.x.row_length;
  GradientLanes lanes;
  lanes.clear();
  for (std::int64_t start = 0; start < n; start += kChunk) {
    const std::int64_t count = std::min(kChunk, n - start);
    const double* const w = has_weight ? weight.high(part.offset + start) : nullptr;
    if constexpr (std::is_same_v<T, double>) {
      Chunk x;
      Chunk dy;
      decode(part_of(row_of(part.x, r), start, count), center, x);
      decode(part_of(row_of(part.dy, r), start, count), 0, dy);
      add_pairs<has_weight>(Decoded{x.high}, Decoded{dy.high}, w, count, lanes);
    } else {
      const std::int64_t at = (r * n + start) * kSize<T>;
      const Encoded<T, true> x{part.x.data + at, splat(center), kAhead};
      const Encoded<T, false> dy{part.dy.data + at, hn::Zero(kDoubles), kAhead};
      add_pairs<has_weight>(x, dy, w, count, lanes);
    }
  }
  return lanes;
}

// A sum whose additions keep what they lose in the low part.
HWY_INLINE V2 added(V2 a, V2 b) {
  const V2 sum = two_sum(a.high, b.high);
  return {sum.high, (a.low + b.low) + sum.low};
}

// Sums of the rows from r on, one in each lane.
HWY_INLINE void put_sums(V x, V x_squares, V g, V gx, V g_squares, GradientRowSums& sums,
                         std::int64_t r) {
  hn::Store(x, kDoubles, sums.x.data() + r);
  hn::Store(x_squares, kDoubles, sums.x_squares.data() + r);
  hn::Store(g, kDoubles, sums.g.data() + r);
  hn::Store(gx, kDoubles, sums.gx.data() + r);
  hn::Store(g_squares, kDoubles, sums.g_squares.data() + r);
}

// The same from the lanes of each row.
HWY_INLINE void add_up(const GradientLanes (&rows)[kWidth], GradientRowSums& sums, std::int64_t r) {
  const auto compensated = [&](CompensatedSum GradientLanes::*sum) HWY_ATTR {
    const V2 total = join_each<V2>(
        [&](std::int64_t k) HWY_ATTR {
          const CompensatedSum& lanes = rows[k].*sum;
          return V2{lanes.sum, lanes.lost};
        },
        [](V2 a, V2 b) HWY_ATTR { return added(a, b); });
    return total.high + total.low;
  };
  const auto plain = [&](const auto& sum_of) HWY_ATTR {
    return join_each<V>([&](std::int64_t k) HWY_ATTR { return sum_of(rows[k]); },
                        [](V a, V b) HWY_ATTR { return a + b; });
  };
  put_sums(compensated(&GradientLanes::x), compensated(&GradientLanes::x_squares),
           plain([](const GradientLanes& row) HWY_ATTR { return row.g.total(); }),
           plain([](const GradientLanes& row) HWY_ATTR { return row.gx.total(); }),
           plain([](const GradientLanes& row) HWY_ATTR { return row.g_squares; }), sums, r);
}

// Columns of kWidth rows that lie one after another, a row in each lane: for short rows, of which lanes need not be joined then.
constexpr std::int64_t kSquare = std::max(kWidth, kGradientVectors);
constexpr std::int64_t kMostTransposed = 32;

template <class T, bool has_weight>
HWY_INLINE void sum_transposed(const std::byte* x, const std::byte* dy, std::int64_t n,
                               const double* weight, GradientRowSums& sums, std::int64_t r) {
  if constexpr (!std::is_same_v<T, float>) {
    prefetch(x + kAhead, n * kWidth * kSize<T>);
    prefetch(dy + kAhead, n * kWidth * kSize<T>);
    constexpr Floats floats;
    alignas(64) float wide[2][kMostTransposed * kWidth];
    for (std::int64_t i = 0; i < n * kWidth; i += static_cast<std::int64_t>(hn::MaxLanes(floats))) {
      hn::Store(load_floats<T>(x + i * kSize<T>), floats, wide[0] + i);
      hn::Store(load_floats<T>(dy + i * kSize<T>), floats, wide[1] + i);
    }
    return sum_transposed<float, has_weight>(reinterpret_cast<const std::byte*>(wide[0]),
                                             reinterpret_cast<const std::byte*>(wide[1]), n, weight,
                                             sums, r);
  }
  const V center = hn::Load(kDoubles, sums.center.data() + r);
  GradientLanes lanes;
  lanes.clear();
  for (std::int64_t column = 0; column < n; column += kSquare) {
    alignas(64) float columns[2][kSquare * kWidth];
    for (std::int64_t c = 0; c < kSquare; c += kWidth) {
      const std::int64_t at = column + c;
      transpose(reinterpret_cast<const float*>(x) + at, n, columns[0] + c * kWidth, kWidth, kWidth);
      transpose(reinterpret_cast<const float*>(dy) + at, n, columns[1] + c * kWidth, kWidth,
                kWidth);
    }
    if constexpr (std::is_same_v<T, float>) {
      prefetch(x + kAhead + column * kWidth * kSize<float>, kSquare * kWidth * kSize<float>);
      prefetch(dy + kAhead + column * kWidth * kSize<float>, kSquare * kWidth * kSize<float>);
    }
    GradientChunk square;
    square.clear();
    for (std::int64_t c = 0; c < kSquare; c += kGradientVectors) {
      V d[kGradientVectors];
      for (std::int64_t v = 0; v < kGradientVectors; ++v) {
        const auto load = [&](const float* from) HWY_ATTR {
          return load_vector<float>(reinterpret_cast<const std::byte*>(from + (c + v) * kWidth));
        };
        d[v] = load(columns[0]) - center;
        V g = load(columns[1]);
        if constexpr (has_weight) g = g * splat(weight[column + c + v]);
        square.add(v, g, d[v]);
      }
      lanes.add_x(d);
    }
    square.add_to(lanes);
  }
  put_sums(lanes.x.total(), lanes.x_squares.total(), lanes.g.total(), lanes.gx.total(),
           lanes.g_squares, sums, r);
}

// T: as above.
template <class T, bool has_weight>
HWY_INLINE void sum_rows(const GradientPart& part, const AffineTerm& weight,
                         GradientRowSums& sums) {
  const std::int64_t n = part.x.row_length;
  const std::int64_t count = part.x.rows;
  for (std::int64_t first = 0; first < count; first += kWidth) {
    if constexpr (!std::is_same_v<T, double>) {
      if (n <= kMostTransposed && n % kSquare == 0 && first + kWidth <= count) {
        const std::int64_t at = first * n * kSize<T>;
        const double* const w = has_weight ? weight.high(part.offset) : nullptr;
        sum_transposed<T, has_weight>(part.x.data + at, part.dy.data + at, n, w, sums, first);
        continue;
      }
    }
    GradientLanes rows[kWidth];
    for (std::int64_t k = 0; k < kWidth; ++k) {
      const std::int64_t r = first + k;
      if (r >= count) {
        rows[k].clear();
        continue;
      }
      const double center = sums.center[static_cast<std::size_t>(r)];
      const bool has_room = n % kWidth == 0 || (count - 1 - r) * n >= kWidth;
      rows[k] = has_room ? lanes_of<T, has_weight>(part, r, center, weight)
                         : lanes_of<double, has_weight>(part, r, center, weight);
    }
    add_up(rows, sums, first);
  }
}

void double_gradient_sums(const GradientPart& part, const AffineTerm& weight,
                          GradientRowSums& sums) {
  with_flag(!weight.empty(), [&](auto has_weight) HWY_ATTR {
    const auto sum = [&]<class T>(T) HWY_ATTR { sum_rows<T, has_weight()>(part, weight, sums); };
    if (!with_pairs_of_floats(part, sum)) sum(double());
  });
}

// What is lost below the normal numbers on the way to a result in doubles, of which the smallest is 2^-149.
constexpr double kLostInDoubles = 0x1p-300;

// A vector of rows on the way from their sums to their gradients.
struct DoubleGradientStatistics {
  const GradientRule& rule;
  const Formula& formula;
  const Count count;
  const Count freedom;
  const V growth;
  const bool has_mean;       // that is not saved
  const bool are_constants;  // mean and 1/s

  // Of each row.
  V center;
  V d_error;  // of d, in u: it is rounded about a center
  V squares;
  V g_squares;
  V g_sum;
  V shift;
  V rstd;
  V per_t;  // 1/t; of constants 0
  V rho;    // of rstd and of 1/t, in u
  V slope;
  V constant;
  V scale;
  V x_size;  // the root of the squares
  V g_size;

  // GradientBounds.
  V g_error;
  V x_error;
  V offset;
  V error;

  HWY_INLINE DoubleGradientStatistics(const GradientRule& of_rows, const SavedStatistics* saved)
      : rule(of_rows),
        formula(rule.formula),
        count(rule.n),
        freedom(formula.freedom(rule.n)),
        growth(splat(rule.growth)),
        has_mean(formula.has_mean() && saved == nullptr),
        are_constants(saved != nullptr && saved->are_constants()) {}

  // The moments of rows, and 1/s. Returns the rows that are usable.
  HWY_INLINE hn::Mask<D> find_rstd(V sum) {
    const V correction = shift * sum;
    const V centered = squares_about_mean(squares, sum, shift);
    const Divisors<V> divisors(quotient(centered, freedom), formula);
    rstd = hn::Div(splat(1), divisors.s);
    per_t = divisors.are_same ? rstd : hn::Div(splat(1), divisors.t);
    // The correction rounds three times. Each rounding from the difference to 1 / s counts 1, or 1/2 under the root.
    const V root_of_correction = hn::Abs(shift) * count.number * splat(rule.per_root);
    const V sum_error = splat(2) + d_error;
    const V lost = hn::MulAdd(
        splat(3) + (d_error + d_error), squares,
        hn::MulAdd(splat(2) * sum_error, x_size * root_of_correction, splat(3) * correction));
    rho = hn::MulAdd(lost * splat(0.5) * freedom.reciprocal, per_t * per_t, splat(4));
    auto has_t = is_within(divisors.t, kMinDivisor, kMaxDivisor);
    if (formula.eps_on == EpsOn::max) {
      const V eps = splat(formula.eps);
      const V near = divisors.t * hn::MulAdd(rho, splat(2 * kUnit), splat(kNearEps));
      const auto is_eps = hn::Lt(divisors.t + near, eps);
      has_t = hn::Or(is_eps, hn::And(has_t, hn::Gt(divisors.t - near, eps)));
      per_t = hn::IfThenZeroElse(is_eps, per_t);
      rho = hn::IfThenElse(is_eps, splat(4), rho);
    }
    return hn::And(hn::Le(correction, splat(rule.most_correction) * centered),
                   hn::And(is_within(divisors.s, kMinDivisor, kMaxDivisor), has_t));
  }

  // The same of what is given.
  HWY_INLINE hn::Mask<D> take_rstd(const SavedStatistics* saved, std::int64_t count_of_rows) {
    alignas(64) double known[kWidth] = {};
    for (std::int64_t k = 0; k < std::min(kWidth, count_of_rows); ++k) {
      known[k] = plain_rstd(saved[k], formula).value_or(DoubleDouble{}).high;
    }
    rstd = hn::Load(kDoubles, known);
    per_t = are_constants ? hn::Zero(kDoubles) : rstd;
    rho = splat(are_constants ? 1 : 0);
    return hn::Ne(rstd, hn::Zero(kDoubles));
  }

  // The rows from r on, of which there are so many. Returns those that are usable.
  HWY_INLINE hn::Mask<D> find(const GradientRowSums& sums, std::int64_t r,
                              const SavedStatistics* saved, std::int64_t count_of_rows) {
    const auto load = [r](const GradientRowSums::Numbers& numbers)
                          HWY_ATTR { return hn::Load(kDoubles, numbers.data() + r); };
    const V zero = hn::Zero(kDoubles);
    center = load(sums.center);
    d_error = hn::IfThenElse(hn::Eq(center, zero), zero, splat(1));
    squares = load(sums.x_squares);
    g_squares = load(sums.g_squares);
    x_size = hn::Sqrt(squares);
    g_size = hn::Sqrt(g_squares);
    const V sum = has_mean ? load(sums.x) : zero;
    shift = quotient(sum, count);
    const auto usable = saved == nullptr ? find_rstd(sum) : take_rstd(saved + r, count_of_rows - r);
    g_sum = formula.has_mean() && !are_constants ? load(sums.g) : zero;
    const GradientTerms<V> terms(g_sum, load(sums.gx), shift, rstd, per_t, count, freedom);
    scale = terms.scale;
    slope = terms.slope;
    constant = terms.constant - slope * shift;
    const auto is_finite = hn::And(hn::Lt(x_size * g_size * hn::Abs(scale), splat(kInfinity)),
                                   hn::Lt(hn::Abs(constant), splat(kInfinity)));
    return hn::And(usable, is_finite);
  }

  HWY_INLINE void find_bounds() {
    const DxTerms& terms = kDxTerms;
    const V unit = splat(kUnit * kSlack);
    const V size = hn::Abs(rstd);
    const V slope_size = hn::Abs(slope);
    const V per_root = splat(rule.per_root);
    const V mean_g = hn::Abs(g_sum) * count.reciprocal;
    const V greatest_slope = x_size * g_size * hn::Abs(scale);
    g_error = (rho + splat(terms.g)) * size * unit;
    x_error = hn::MulAdd(hn::MulAdd(splat(3), growth, splat(terms.product)), greatest_slope,
                         hn::MulAdd(splat(3), rho, splat(terms.slope)) * slope_size) *
              unit;
    const V roots = hn::MulAdd((growth + splat(terms.shift)) * slope_size, x_size,
                               (growth + splat(terms.constant)) * size * g_size);
    const V of_sums = hn::MulAdd(roots, per_root, (rho + splat(terms.mean)) * size * mean_g);
    offset = splat(kLostInDoubles);
    if (!are_constants) offset = hn::MulAdd(of_sums, unit, offset);
    error =
        hn::MulAdd(g_error, g_size, hn::MulAdd(x_error, x_size, offset)) * splat(kSlack * kSlack);
  }

  // The rows of which doubles decide most results. The sum of dx^2 tells: one element of 32 is undecided where the error
  // is 2^-5 of half an ulp of the root of its mean. The sum is taken at the lower end of its own error.
  HWY_INLINE hn::Mask<D> decides(const GradientRowSums& sums, std::int64_t r) const {
    const auto load = [r](const GradientRowSums::Numbers& numbers)
                          HWY_ATTR { return hn::Load(kDoubles, numbers.data() + r); };
    const V sizes =
        hn::MulAdd(rstd * rstd, g_squares,
                   hn::MulAdd(slope * slope, squares, count.number * constant * constant));
    const V products =
        hn::MulAdd(rstd * slope, load(sums.gx),
                   hn::MulAdd(rstd * constant, load(sums.g), slope * constant * load(sums.x)));
    const V lost = hn::MulAdd(splat(3), growth, splat(10)) * splat(kUnit);
    const V dx_squares = hn::MulAdd(splat(2), products, sizes) - lost * sizes;
    return hn::And(hn::Gt(g_squares, hn::Zero(kDoubles)),
                   hn::Le(error * error * count.number, splat(rule.share) * dx_squares));
  }

  // (20) The errors of the mean, of its product with rstd, and of d. The rest of the error of d grows with x-hat: it is in the
  // slope.
  HWY_INLINE V xhat_offset() const {
    if (!has_mean) return hn::Zero(kDoubles);
    const V x_root = x_size * splat(rule.per_root);
    const V twice = splat(2) + d_error;
    return (twice * x_root + twice * hn::Abs(shift)) * hn::Abs(rstd) * splat(kUnit * kSlack);
  }
  HWY_INLINE V xhat_slope() const { return (rho + splat(1) + d_error) * splat(kUnit * kSlack); }
};

void double_gradients(const GradientRule& rule, const GradientRowSums& sums, std::int64_t count,
                      const SavedStatistics* saved, DoubleGradients& to) {
  DoubleGradientStatistics rows(rule, saved);
  unsigned usable_rows = 0;
  unsigned decided_rows = 0;
  V xhat_offset = hn::Zero(kDoubles);
  V xhat_slope = hn::Zero(kDoubles);
  for (std::int64_t r = 0; r < count; r += kWidth) {
    const auto usable = hn::And(rows.find(sums, r, saved, count), mask_of(kDoubles, count - r));
    rows.find_bounds();
    const auto decides = hn::And(usable, rows.decides(sums, r));
    std::uint8_t bits = 0;
    hn::StoreMaskBits(kDoubles, usable, &bits);
    usable_rows |= static_cast<unsigned>(bits) << r;
    hn::StoreMaskBits(kDoubles, decides, &bits);
    decided_rows |= static_cast<unsigned>(bits) << r;
    const auto put = [r](V numbers, DoubleGradients::Numbers& all)
                         HWY_ATTR { hn::Store(numbers, kDoubles, all.data() + r); };
    put(rows.center, to.center);
    put(rows.shift, to.shift);
    put(rows.rstd, to.rstd);
    put(rows.slope, to.slope);
    put(rows.constant, to.constant);
    put(rows.g_error, to.g_error);
    put(rows.x_error, to.x_error);
    put(rows.offset, to.offset);
    put(rows.error, to.error);
    xhat_offset = hn::Max(xhat_offset, hn::IfThenElseZero(usable, rows.xhat_offset()));
    xhat_slope = hn::Max(xhat_slope, hn::IfThenElseZero(usable, rows.xhat_slope()));
  }
  to.usable = usable_rows;
  to.decides = decided_rows;
  to.xhat = {hn::GetLane(hn::MaxOfLanes(kDoubles, xhat_offset)),
             hn::GetLane(hn::MaxOfLanes(kDoubles, xhat_slope))};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lnorm
HWY_AFTER_NAMESPACE();

#endif
