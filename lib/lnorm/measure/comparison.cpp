#include "lnorm/measure/comparison.hpp"

#include <utility>

#include "lnorm/core/double_double.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/processors.hpp"

namespace lnorm {

namespace {

double integer_difference(Number a, Number b) {
  const DoubleDouble high = two_sum(a.high, -b.high);
  return std::fabs((high + DoubleDouble{a.low - b.low}).high);
}

// |a - b|, rounded once.
inline double distance(Number a, Number b) {
  return a.low == 0 && b.low == 0 ? std::fabs(a.high - b.high) : integer_difference(a, b);
}

template <class T>
void raise(std::optional<Greatest<T>>& greatest, T value, const ElementPair& at) {
  if (!greatest || value > greatest->value) greatest = Greatest<T>{value, at};
}

// Counts the values of T from zero to a number, rounded to T (nearest, ties to even), as detail::ordinal_of in ulp.hpp
// does. The number is one of float32's, or T is float32; it is not beyond T. In 32 bits and without branches: compilers
// vectorize it.
template <class T>
std::int32_t short_ordinal(double value) {
  constexpr FloatFormat kFormat = float_format(dtype_of<T>());
  constexpr int kDropped = 24 - kFormat.precision;
  // Subnormals are float32's where this is 0.
  constexpr int kLeastNormal = kFormat.least_exponent + kFormat.precision - 1 + 126;
  const auto number = static_cast<float>(value);
  std::int32_t size = std::bit_cast<std::int32_t>(number) & 0x7fff'ffff;
  std::int32_t subnormal = 0;
  if constexpr (kLeastNormal > 0) {
    // Up to the least normal number a sum with 2^23 steps has their count in its low bits. From there on the number's own
    // bits count them.
    constexpr auto kCounting = std::bit_cast<float>((127 + 23 + kFormat.least_exponent) << 23);
    constexpr std::int32_t kFirst = (kLeastNormal + 1) << 23;
    const std::int32_t below = size < kFirst ? size : kFirst;
    subnormal = std::bit_cast<std::int32_t>(std::bit_cast<float>(below) + kCounting) & 0x7f'ffff;
    size = (size > kFirst ? size : kFirst) - kFirst;
  }
  if constexpr (kDropped > 0) {
    size = (size + (1 << (kDropped - 1)) - 1 + ((size >> kDropped) & 1)) >> kDropped;
  }
  const std::int32_t minus = std::bit_cast<std::int32_t>(number) >> 31;
  return ((size + subnormal) ^ minus) - minus;
}

// Distances in steps of the expected dtype, whose C++ type is T.
template <class T>
struct Steps {
  // Whether the actual numbers are floats that float32 has, or T is float32.
  bool is_short = false;

  std::uint64_t rank(const ElementPair& pair, double) const {
    if constexpr (kInBlocks) {
      if (is_short && std::fabs(pair.actual.high) <= kGreatest) {
        return rank_in_block(pair.actual.high, pair.expected.high);
      }
    }
    return ulp_distance<T>(pair.actual, pair.expected);
  }
  bool takes_blocks() const { return is_short; }
  // The rank of two numbers up to the greatest.
  std::uint32_t rank_in_block(double actual, double expected) const {
    const std::int32_t a = short_ordinal<T>(actual);
    const std::int32_t e = short_ordinal<T>(expected);
    return static_cast<std::uint32_t>(std::max(a, e)) - static_cast<std::uint32_t>(std::min(a, e));
  }
  static std::size_t class_of(std::uint64_t rank) { return UlpCounts::class_of_steps(rank); }
  static bool rounds_to(double, double) { return false; }
  static bool is_misrounded_tie(std::uint64_t, const ElementPair&, double) { return false; }

  static constexpr bool kReal = false;
  static constexpr bool kInBlocks =
      std::is_same_v<T, float> || (SmallFloat<T> && !std::is_same_v<T, Float8E8M0>);
  static constexpr double kGreatest = float_format(dtype_of<T>()).greatest;
};

// Real distances, in ulp of the actual dtype at expected, which may be beyond its range.
class Reals {
 public:
  explicit Reals(DType actual) : format_(float_format(actual)) {}

  // difference: |actual - expected|, rounded once; so is the distance.
  std::uint64_t rank(const ElementPair& pair, double difference) const {
    return rank(pair.expected.high, difference);
  }
  static bool takes_blocks() { return true; }
  std::uint64_t rank_in_block(double actual, double expected) const {
    return rank(expected, std::fabs(actual - expected));
  }
  static std::size_t class_of(std::uint64_t rank) {
    return UlpCounts::class_of_real(std::bit_cast<double>(rank));
  }

  // The infinity to which a number rounds is what it is; NaN, where the dtype has no infinity.
  bool rounds_to(double actual, double number) const {
    // This holds beyond half an ulp above the greatest number: ties go to the even significand.
    const double half_ulp = std::ldexp(1.0, std::ilogb(format_.greatest) - format_.precision);
    const bool is_even = std::fmod(format_.greatest, 4 * half_ulp) == 0;
    const double past = std::fabs(number) - half_ulp - format_.greatest;
    if (!std::isfinite(number) || !(is_even ? past > 0 : past >= 0)) return false;
    if (!format_.has_infinity) return std::isnan(actual);
    return std::isinf(actual) && std::signbit(actual) == std::signbit(number);
  }

  // Ties go to the even neighbor, which is a multiple of two ulp.
  static bool is_misrounded_tie(std::uint64_t rank, const ElementPair& pair, double difference) {
    constexpr auto kHalf = std::bit_cast<std::uint64_t>(0.5);
    return rank == kHalf && std::fmod(pair.actual.high, 4 * difference) != 0;
  }

  static constexpr bool kReal = true;
  static constexpr bool kInBlocks = true;
  static constexpr double kGreatest = std::numeric_limits<double>::max();

 private:
  std::uint64_t rank(double expected, double difference) const {
    // The exponent of a subnormal float64 is not known, but less than that of any ulp.
    const auto bits = std::bit_cast<std::uint64_t>(std::fabs(expected));
    const int exponent = static_cast<int>(bits >> 52) - 1023;
    const int of_ulp = std::max(exponent - format_.precision + 1, format_.least_exponent);
    const auto per_ulp = static_cast<std::uint64_t>(1023 - of_ulp) << 52;
    return std::bit_cast<std::uint64_t>(difference * std::bit_cast<double>(per_ulp));
  }

  FloatFormat format_;
};

// Bounds of elements as numbers that hold where there is no criterion.
struct Bounds {
  double rtol = 0;
  double atol = kInfinity;
  double absolute = kInfinity;
  std::uint64_t rank = std::numeric_limits<std::uint64_t>::max();
};

// The greatest difference that is at most so many ulp, as their quotient says.
double greatest_difference(double ulps, double ulp) {
  const double product = ulps * ulp;
  return product / ulp <= ulps ? product : std::nextafter(product, 0.0);
}

// Passes over the pairs of a chunk, row by row. Most of them raise no maximum and are not among the worst, which
// three comparisons tell, or, for a block of pairs at once, loops without branches.
template <class Measure>
class Pass {
 public:
  Pass(const Measure& measure, std::size_t max_mismatches, Comparison& comparison,
       MismatchPlaces* places)
      : measure_(measure),
        max_mismatches_(max_mismatches),
        comparison_(comparison),
        places_(places) {
    const Criteria& criteria = comparison.criteria;
    if (criteria.tolerance) {
      bounds_.rtol = criteria.tolerance->rtol;
      bounds_.atol = criteria.tolerance->atol;
    }
    if (criteria.max_abs) bounds_.absolute = *criteria.max_abs;
    if (criteria.baseline) bounds_.absolute = std::min(bounds_.absolute, *criteria.baseline);
    if (criteria.max_ulp) bounds_.rank = Ulps::greatest(*criteria.max_ulp, Measure::kReal).rank;
  }

  ~Pass() { comparison_.ulp_counts.append(others_); }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  void see(const Chunk& actual, const Chunk& expected, std::int64_t first, const RowRun& run) {
    comparison_.elements += run.skipped;
    comparison_.left_out += run.skipped;
    if (run.count == 0) return;
    begin(run);
    const std::int64_t end = first + run.count;
    std::int64_t i = first;
    const auto see_until = [&](std::int64_t last) {
      for (; i < last; ++i) {
        see({comparison_.elements++,
             {actual.high[i], actual.low[i]},
             {expected.high[i], expected.low[i]}});
      }
    };
    if constexpr (Measure::kInBlocks) {
      // Where two blocks do not pass, the next ones hardly do.
      for (int left = 2; measure_.takes_blocks() && left > 0 && i + kBlock <= end;) {
        if (any_ && passes_block(actual, expected, i)) {
          i += kBlock;
        } else {
          --left;
          see_until(i + kBlock);
        }
      }
    }
    see_until(end);
    if (places_ == nullptr) return;
    add_errors(actual, expected, first, run);
  }

 private:
  static constexpr std::int64_t kBlock = 64;  // the bits of a word

  // Whether none of the pairs of a block raises a maximum, is among the worst or is to be shown. Then they are counted.
  LNORM_FOR_PROCESSORS bool passes_block(const Chunk& actual, const Chunk& expected,
                                         std::int64_t first) {
    using Rank = decltype(measure_.rank_in_block(0, 0));
    Rank ranks[kBlock];
    const double absolute = std::min(absolute_, std::numeric_limits<double>::max());
    constexpr double kMost = Measure::kGreatest;
    // Counts of what holds, without branches.
    std::int64_t far = 0;  // from the greatest relative difference
    std::int64_t usual = 0;
    std::int64_t finite = 0;
    std::int64_t tolerable = 0;
    std::int64_t passing = 0;
    const double most = run_bounds_.absolute;
    for (std::int64_t i = first; i < first + kBlock; ++i) {
      const double difference = std::fabs(actual.high[i] - expected.high[i]);
      const double size = std::fabs(expected.high[i]);
      const auto is_tolerable = static_cast<std::int64_t>(difference <= tolerated(size));
      far += static_cast<std::int64_t>(difference <= relative_ * size);
      usual += static_cast<std::int64_t>(difference <= absolute);
      finite += static_cast<std::int64_t>(std::fabs(actual.high[i]) <= kMost);
      tolerable += is_tolerable;
      passing += is_tolerable & static_cast<std::int64_t>(difference <= most);
    }
    const std::int64_t failed = kBlock - passing;
    if (usual < kBlock || finite < kBlock) return false;
    if (far < kBlock && raises_relative(actual, expected, first)) return false;
    Rank greatest = 0;
    for (std::int64_t k = 0; k < kBlock; ++k) {
      ranks[k] = measure_.rank_in_block(actual.high[first + k], expected.high[first + k]);
      greatest = std::max(greatest, ranks[k]);
    }
    if (greatest > std::min(rank_, run_bounds_.rank)) return false;
    if (failed > 0 && comparison_.first_mismatches.size() < max_mismatches_) return false;
    for (std::int64_t k = 0; k < kBlock; k += 2) {
      comparison_.ulp_counts.add(Measure::class_of(ranks[k]));
      others_.add(Measure::class_of(ranks[k + 1]));
    }
    for (std::int64_t k = 0; Measure::kReal && k < kBlock; ++k) {
      const double number = actual.high[first + k];
      comparison_.misrounded_ties += Measure::is_misrounded_tie(
          ranks[k], {0, {number}, {}}, std::fabs(number - expected.high[first + k]));
    }
    comparison_.out_of_tolerance += kBlock - tolerable;
    comparison_.mismatched += failed;
    mismatched_ += failed;
    if (failed > 0 && places_ != nullptr) {
      std::uint64_t columns = 0;
      for (std::int64_t k = 0; k < kBlock; ++k) {
        const double expected_k = expected.high[first + k];
        const double difference = std::fabs(actual.high[first + k] - expected_k);
        const double bound = std::min(tolerated(std::fabs(expected_k)), most);
        columns |= static_cast<std::uint64_t>(!(difference <= bound)) << k;
      }
      places_->columns.add_bits(column_of(comparison_.elements), columns);
    }
    comparison_.elements += kBlock;
    return true;
  }

  // size: of the expected number.
  double tolerated(double size) const { return bounds_.atol + bounds_.rtol * size; }

  // Many elements of few bits have the greatest relative difference: those raise nothing.
  bool raises_relative(const Chunk& actual, const Chunk& expected, std::int64_t first) const {
    int raises = 0;
    for (std::int64_t i = first; i < first + kBlock; ++i) {
      const double difference = std::fabs(actual.high[i] - expected.high[i]);
      const double quotient = difference / std::fabs(expected.high[i]);
      raises |=
          static_cast<int>(difference > 0) & static_cast<int>(!(quotient <= greatest_relative_));
    }
    return raises != 0;
  }

  void add_errors(const Chunk& actual, const Chunk& expected, std::int64_t first,
                  const RowRun& run) {
    RowErrors errors{run.row, run.count, mismatched_};
    for (std::int64_t i = first; places_->wants_all_rows && i < first + run.count; ++i) {
      if (!std::isfinite(actual.high[i]) || !std::isfinite(expected.high[i])) continue;
      errors.max_abs = std::max(errors.max_abs, distance({actual.high[i], actual.low[i]},
                                                         {expected.high[i], expected.low[i]}));
    }
    places_->add(errors);
  }

  void begin(const RowRun& run) {
    run_ = &run;
    run_begin_ = comparison_.elements;
    mismatched_ = 0;
    run_bounds_ = bounds_;
    if (const std::optional<double>& most = comparison_.criteria.max_row_ulp) {
      if (run.scale.ulp > 0) {
        run_bounds_.absolute =
            std::min(run_bounds_.absolute, greatest_difference(*most, run.scale.ulp));
      } else {
        run_bounds_.rank = std::min(run_bounds_.rank, Ulps::greatest(*most, Measure::kReal).rank);
      }
    }
    find_limits();
  }

  void see(const ElementPair& pair) {
    const double difference = distance(pair.actual, pair.expected);
    if (!(difference <= std::numeric_limits<double>::max()) && !is_finite(pair)) {
      return see_non_finite(pair);
    }
    const double size = std::fabs(pair.expected.high);
    const std::uint64_t rank = measure_.rank(pair, difference);
    comparison_.ulp_counts.add(Measure::class_of(rank));
    if (Measure::is_misrounded_tie(rank, pair, difference)) ++comparison_.misrounded_ties;
    if (!(difference <= absolute_ && difference <= relative_ * size && rank <= rank_ && any_)) {
      const Ulps ulps{rank, Measure::kReal};
      const double ulp = run_->scale.ulp;
      take_distances(pair, {ulps, difference, difference == 0 ? 0 : difference / size,
                            ulp > 0 ? difference / ulp : ulps.value()});
    }
    const bool tolerable = difference <= tolerated(size);
    const bool passes = tolerable && difference <= run_bounds_.absolute && rank <= run_bounds_.rank;
    if (!passes) {
      if (!tolerable) ++comparison_.out_of_tolerance;
      add_mismatch(pair);
    }
  }

  static bool is_finite(const ElementPair& pair) {
    return std::isfinite(pair.actual.high) && std::isfinite(pair.expected.high);
  }

  // Out of line, or the loop would be slower for it.
  [[gnu::noinline]] void take_distances(const ElementPair& pair, const Distances& distances) {
    raise(comparison_.absolute, distances.absolute, pair);
    if (pair.expected.high != 0) raise(comparison_.relative, distances.relative, pair);
    raise(comparison_.ulps, distances.ulps, pair);
    raise(comparison_.row_ulps, distances.row_ulps, pair);
    comparison_.worst.add({pair, distances, run_->scale.greatest});
    find_limits();
  }

  // At least one is not.
  [[gnu::noinline]] void see_non_finite(const ElementPair& pair) {
    const double actual = pair.actual.high;
    const double expected = pair.expected.high;
    const bool one_side = std::isfinite(actual) || std::isfinite(expected);
    const bool both_nan = std::isnan(actual) && std::isnan(expected);
    const bool is_rounded = measure_.rounds_to(actual, expected);
    const bool passes =
        actual == expected || (both_nan && comparison_.criteria.equal_nan) || is_rounded;
    if (one_side) ++comparison_.non_finite_one_side;
    if (is_rounded) ++comparison_.rounded_to_infinity;
    if (!one_side && !passes) ++comparison_.non_finite_differing;
    if (passes) return;
    add_mismatch(pair);
    comparison_.worst.add({pair, std::nullopt, run_->scale.greatest});
    find_limits();
  }

  void add_mismatch(const ElementPair& pair) {
    ++comparison_.mismatched;
    ++mismatched_;
    if (places_ != nullptr) places_->columns.add(column_of(pair.position));
    if (comparison_.first_mismatches.size() < max_mismatches_) {
      comparison_.first_mismatches.push_back(pair);
    }
  }

  // Of the element that is so manyth in what was compared.
  std::int64_t column_of(std::int64_t position) const {
    return run_->column + position - run_begin_;
  }

  // What a pair must not exceed in order to raise no maximum and not to be among the worst; of the quotient a
  // little less, for its rounding.
  void find_limits() {
    any_ = comparison_.absolute && comparison_.relative;
    if (!any_) return;
    const WorstElements::Limits worst = comparison_.worst.limits();
    absolute_ = std::min(comparison_.absolute->value, worst.absolute);
    const double row_ulps = std::min(comparison_.row_ulps->value, worst.row_ulps);
    absolute_ = std::min(absolute_,
                         run_->scale.ulp > 0 ? greatest_difference(row_ulps, run_->scale.ulp) : 0);
    greatest_relative_ = std::min(comparison_.relative->value, worst.relative);
    relative_ = greatest_relative_ * (1 - 0x1p-50);
    rank_ = std::min(comparison_.ulps->value.rank, worst.ulp_rank);
  }

  const Measure measure_;
  const std::size_t max_mismatches_;
  Bounds bounds_;
  Bounds run_bounds_;  // with those of the row
  Comparison& comparison_;
  MismatchPlaces* places_;
  const RowRun* run_ = nullptr;
  std::int64_t run_begin_ = 0;
  std::int64_t mismatched_ = 0;  // of the run
  UlpCounts others_;  // of every second pair of blocks: adding to one count waits for the last time
  bool any_ = false;
  double absolute_ = 0;
  double greatest_relative_ = 0;
  double relative_ = 0;
  std::uint64_t rank_ = 0;
};

std::optional<double> count_of(std::int64_t elements) { return static_cast<double>(elements); }

// Zeros have no direction: what is another number has another one.
std::optional<double> bounded_cosine(const Comparison& c) {
  if (c.errors.equal_numbers() == c.errors.pairs()) return std::nullopt;
  return c.errors.cosine().value_or(kNan);
}

constexpr auto kEach = CriterionRow::each_element;
constexpr auto kMost = CriterionRow::most;
constexpr auto kLeast = CriterionRow::least;
constexpr CriterionRow kCriteria[] = {
    {"finite", nullptr, "", [](const Comparison& c) { return count_of(c.not_finite()); },
     Criterion::finite, kMost},
    {"tolerance", nullptr, "", [](const Comparison& c) { return count_of(c.out_of_tolerance); },
     Criterion::tolerance, kEach},
    {"max_ulp", &Criteria::max_ulp, "",
     [](const Comparison& c) { return c.greatest(WorstBy::ulp); }, Criterion::max_ulp, kEach},
    {"max_row_ulp", &Criteria::max_row_ulp, "",
     [](const Comparison& c) { return c.greatest(WorstBy::row_ulp); }, Criterion::max_row_ulp,
     kEach},
    {"max_abs", &Criteria::max_abs, "",
     [](const Comparison& c) { return c.greatest(WorstBy::abs); }, Criterion::max_abs, kEach},
    {"baseline", &Criteria::baseline, "",
     [](const Comparison& c) { return c.greatest(WorstBy::abs); }, Criterion::baseline, kEach},
    {"max_mismatched", nullptr, "", [](const Comparison& c) { return count_of(c.mismatched); },
     Criterion::max_mismatched, kMost},
    {"max_mean_abs", &Criteria::max_mean_abs, "",
     [](const Comparison& c) { return c.errors.mean_absolute(); }, Criterion::max_mean_abs, kMost},
    {"max_rmse", &Criteria::max_rmse, "",
     [](const Comparison& c) { return c.errors.root_mean_square(); }, Criterion::max_rmse, kMost},
    {"min_cosine", &Criteria::min_cosine, "", bounded_cosine, Criterion::min_cosine, kLeast},
    {"min_sqnr", &Criteria::min_sqnr, " dB", [](const Comparison& c) { return c.errors.sqnr(); },
     Criterion::min_sqnr, kLeast},
};

bool holds(const CriterionRow& row, double found, const Comparison& c) {
  if (row.criterion == Criterion::max_mismatched) {
    return !c.criteria.max_mismatched ||
           c.criteria.max_mismatched->allows(c.mismatched, c.compared());
  }
  if (row.kind == kEach && c.criteria.max_mismatched) return true;
  if (row.counts()) return found == 0;
  const std::optional<double>& bound = c.criteria.*row.bound;
  if (!bound) return true;
  // Steps are compared as integers, of which a double may have too few digits.
  if (row.criterion == Criterion::max_ulp) {
    return c.ulps->value <= Ulps::greatest(*bound, c.ulps->value.is_real);
  }
  return row.kind == kLeast ? found >= *bound : found <= *bound;
}

}  // namespace

std::span<const CriterionRow> criterion_rows() noexcept { return kCriteria; }

const CriterionRow& row_of(Criterion criterion) noexcept {
  return kCriteria[static_cast<std::size_t>(criterion)];
}

std::string_view name(Criterion criterion) { return row_of(criterion).name; }

std::optional<double> Comparison::greatest(WorstBy by) const {
  if (by == WorstBy::ulp) return ulps ? std::optional(ulps->value.value()) : std::nullopt;
  const std::optional<Greatest<double>>& found = by == WorstBy::abs   ? absolute
                                                 : by == WorstBy::rel ? relative
                                                                      : row_ulps;
  return found ? std::optional(found->value) : std::nullopt;
}

DType Comparison::ulp_dtype() const {
  return is_wider(expected.dtype, actual.dtype) ? actual.dtype : expected.dtype;
}

std::optional<std::int64_t> Comparison::correctly_rounded() const {
  if (!is_wider(expected.dtype, actual.dtype)) return std::nullopt;
  return ulp_counts.count(0) + ulp_counts.count(1) - misrounded_ties;  // up to half an ulp
}

std::vector<Failure> Comparison::failures() const {
  std::vector<Failure> result;
  if (!same_shape) return result;
  for (const CriterionRow& row : kCriteria) {
    const auto found = row.found(*this);
    if (found && !holds(row, *found, *this)) result.push_back({row.criterion, *found});
  }
  return result;
}

Shape Comparison::index(const ElementPair& pair) const {
  return index_of(position(pair), file_shape(actual));
}

Shape Comparison::row_index(const ElementPair& pair) const {
  return extents(index_of(position(pair), actual.shape), kept_axes(actual.shape, rows->axes));
}

std::int64_t Comparison::position(const ElementPair& pair) const {
  return slice ? position_in_whole(*slice, pair.position) : pair.position;
}

void Comparison::clear(std::int64_t position, std::uint64_t floor) {
  std::vector<ElementPair> none = std::move(first_mismatches);  // whose memory is used again
  none.clear();
  static_cast<ComparedElements&>(*this) = {};
  first_mismatches = std::move(none);
  elements = position;
  worst.clear(floor);
}

void Comparison::append(const Comparison& next, std::size_t max_mismatches) {
  elements = next.elements;
  left_out += next.left_out;
  mismatched += next.mismatched;
  out_of_tolerance += next.out_of_tolerance;
  for (const ElementPair& pair : next.first_mismatches) {
    if (first_mismatches.size() == max_mismatches) break;
    first_mismatches.push_back(pair);
  }
  non_finite_one_side += next.non_finite_one_side;
  rounded_to_infinity += next.rounded_to_infinity;
  non_finite_differing += next.non_finite_differing;
  const auto raise_to = [](auto& greatest, const auto& other) {
    if (other) raise(greatest, other->value, other->at);
  };
  raise_to(absolute, next.absolute);
  raise_to(relative, next.relative);
  raise_to(ulps, next.ulps);
  raise_to(row_ulps, next.row_ulps);
  ulp_counts.append(next.ulp_counts);
  misrounded_ties += next.misrounded_ties;
  errors.append(next.errors);
  worst.merge(next.worst);
}

void leave_out(const char* kept, Chunk& actual, Chunk& expected, std::vector<RowRun>& runs) {
  std::vector<RowRun> left;
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::int64_t skipped = 0;
  for (const RowRun& run : runs) {
    for (std::int64_t i = 0; i < run.count; ++i, ++from) {
      if (kept[from] == 0) {
        ++skipped;
        continue;
      }
      const bool goes_on = i > 0 && skipped == 0;
      if (!goes_on) left.push_back({0, run.row, run.column + i, run.scale, skipped});
      ++left.back().count;
      skipped = 0;
      for (Chunk* const chunk : {&actual, &expected}) {
        chunk->high[to] = chunk->high[from];
        chunk->low[to] = chunk->low[from];
      }
      ++to;
    }
  }
  if (skipped > 0) left.push_back({.skipped = skipped});
  runs = std::move(left);
}

void compare_elements(const Chunk& actual, const Chunk& expected, std::span<const RowRun> runs,
                      std::size_t max_mismatches, Comparison& comparison, MismatchPlaces* places) {
  std::int64_t count = 0;
  for (const RowRun& run : runs) count += run.count;
  const DType actual_dtype = comparison.actual.dtype;
  const DType expected_dtype = comparison.expected.dtype;
  if (comparison.has_errors) {
    comparison.errors.add(actual, expected, count, actual_dtype, expected_dtype);
  }
  const auto see_all = [&](const auto& measure) {
    Pass pass(measure, max_mismatches, comparison, places);
    std::int64_t first = 0;
    for (const RowRun& run : runs) {
      pass.see(actual, expected, first, run);
      first += run.count;
    }
  };
  if (is_wider(expected_dtype, actual_dtype)) return see_all(Reals(actual_dtype));
  const bool is_short = is_floating(actual_dtype) && (expected_dtype == DType::float32 ||
                                                      float_format(actual_dtype).precision <= 24);
  visit(expected_dtype, [&]<class T>(T) { see_all(Steps<T>{is_short}); });
}

void compare_same_elements(const RawElements& elements, Comparison& comparison) {
  const auto pair_at = [&](std::int64_t index) {
    const Number element = element_at(elements, index);
    return ElementPair{comparison.elements + index, element, element};
  };
  const std::int64_t finite_before = comparison.errors.pairs();
  comparison.errors.add_same(elements);
  comparison.ulp_counts.add(0, comparison.errors.pairs() - finite_before);
  // No distance is greater than 0: each is that of the first pair, unless there has been one.
  if (!comparison.absolute) {
    if (const auto first = first_finite(elements)) {
      comparison.absolute = Greatest<double>{0, pair_at(*first)};
      comparison.ulps = Greatest<Ulps>{{}, pair_at(*first)};
      comparison.row_ulps = comparison.absolute;
    }
  }
  if (!comparison.relative) {
    if (const auto first = first_finite_not_zero(elements)) {
      comparison.relative = Greatest<double>{0, pair_at(*first)};
    }
  }
  comparison.elements += elements.count;
}

}  // namespace lnorm
