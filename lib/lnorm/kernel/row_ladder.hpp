#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "lnorm/core/number.hpp"
#include "lnorm/kernel/bracket.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

// What the first elements tell of a row.
struct RowSample {
  Number first;
  // For sums: the mean of a few, or 0 where that is about as good. Of 64-bit integers, which are no doubles, the rounded
  // first one: their deviations from it are doubles.
  double center;
};
inline RowSample sample_of(const RowsIn& row) noexcept {
  constexpr std::int64_t kFew = 16;
  const Number first = element_of(row, 0);
  if (has_low(row.dtype)) return {first, first.low == 0 ? 0 : first.high};
  Chunk chunk;
  const std::int64_t n = load_chunk(part_of(row, 0, std::min(kFew, row.row_length)), 0, chunk);
  double sum = 0;
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += chunk.high[i];
    squares += chunk.high[i] * chunk.high[i];
  }
  const double mean = sum / static_cast<double>(n);
  const bool is_far_from_zero = 3 * mean * sum > squares;  // mean^2 > variance / 2
  return {first, is_far_from_zero && std::isfinite(squares) ? mean : 0};
}

// A row brought into the range of double-doubles: its x is x times 2^exponent. That changes nothing but exponents, and bits of small
// elements beside large ones, of which bounds take more (kLostBits).
struct Scaling {
  int exponent;
  Formula formula;

  // most: the largest |x|, not 0. A root of eps stays in range, and an eps more than 0.
  Scaling(double most, const Formula& of_row) : exponent(-std::ilogb(most)), formula(of_row) {
    constexpr int kMostDivisor = 180;
    if (formula.eps == 0) return;
    const int half = formula.eps_on == EpsOn::variance ? 2 : 1;
    exponent = std::min(exponent, kMostDivisor - std::ilogb(formula.eps) / half);
    formula.eps = std::max(times_power(formula.eps, half * exponent),
                           std::numeric_limits<double>::denorm_min());
  }
  Number of(Number x) const noexcept { return {times_power(x.high, exponent), 0}; }
  RowSample of(const RowSample& sample) const noexcept {
    return {of(sample.first), times_power(sample.center, exponent)};
  }
};

// The larger size; NaN if there is one.
inline double larger_size(double most, Number x) noexcept {
  return std::fabs(x.high) <= most ? most : std::isnan(most) ? most : std::fabs(x.high);
}

// The arithmetic that a row's sums are computed in.
enum class Precision { none, doubles, double_doubles };

// A row on its way up the ladder of precision: from doubles to double-doubles to exact integers, whole or in parts.
//
//   Row row(setting, sample_of(its first part), ...);
//   while (row.wants_sums()) row.take(the sum of row.sums(part) over all parts);
//
// Then it has statistics in doubles or in double-doubles, or integers. They decide its results, element by element; a
// higher step, for which the row is read once more, decides what they leave undecided.
//
// Row, which derives from this, has the steps:
//
//   AllSums sums(part) const                      of summing_, about center_
//   void take_doubles(sums), take_double_doubles(sums)
//   unique_ptr<Row> again(setting) const          the same row by another setting
//   unique_ptr<const Exact> make_exact() const    null where the row is not finite
//   Bracket in_doubles(element) const, in_double_doubles(element) const    by doubles_ and double_doubles_
//   double exactly(element, known) const
//
// Doubles and DoubleDoubles are the statistics.
template <class Row, class Setting, class Part, class AllSums, class Doubles, class DoubleDoubles,
          class Exact>
class RowLadder {
 public:
  using Read = std::function<void(const std::function<void(const Part& part)>& see)>;

  bool wants_sums() const noexcept { return summing_ != Precision::none; }

  void take(AllSums row) {
    if (!setting_.formula.has_mean()) row.drop_means();
    const Precision precision = std::exchange(summing_, Precision::none);
    precision == Precision::doubles ? self().take_doubles(row) : self().take_double_doubles(row);
  }

  // Reads the row as often as it wants sums.
  void sum_up() {
    while (wants_sums()) {
      AllSums total;
      read_row_([&](const Part& part) { total += self().sums(part); });
      take(total);
    }
  }

  // Requires that the row is finite.
  const Exact& exact() const {
    const std::lock_guard lock(mutex_);
    if (!exact_) exact_ = self().make_exact();
    return *exact_;
  }

 protected:
  // read_row may bring the parts in any order.
  RowLadder(const Setting& setting, const RowSample& sample, Read read_row)
      : setting_(setting), sample_(sample), read_row_(std::move(read_row)) {}

  void start(Precision precision, double center) {
    summing_ = precision;
    center_ = center;
  }

  double center() const noexcept { return setting_.formula.has_mean() ? sample_.center : 0; }

  // Whether sums in doubles, where they were about a bad center, are tried about the mean that they give.
  bool starts_about_mean(double sum) {
    constexpr int kMaxTries = 2;
    if (!setting_.formula.has_mean() || ++tries_ == kMaxTries) return false;
    start(Precision::doubles, center_ + sum / static_cast<double>(setting_.row_length));
    return true;
  }

  // Finds centered_, from sums in double-doubles. False where they have to be about the first element.
  bool find_centered(const Sums& x, double growth) {
    const bool has_mean = setting_.formula.has_mean();
    const double first = sample_.first.high;
    centered_ = centered_sums(x, center_, setting_.row_length, has_mean, growth);
    if (centered_) return true;
    if (has_mean && center_ != first && std::isfinite(x.squares.high)) {
      start(Precision::double_doubles, first);
      return false;
    }
    if (x.squares.high == 0 && is_constant()) {
      centered_ = constant_sums(center_, setting_.row_length);
    }
    return true;
  }

  // The result of an element by the lowest step that decides it.
  template <class Element>
  double decide(const Element& element) const {
    Bracket known;
    if (doubles_) known = self().in_doubles(element);
    if (!known.is_decided() && double_doubles_) known = self().in_double_doubles(element);
    if (known.is_decided()) return known.least;
    if (!double_doubles_ && !exact_ && !setting_.needs_double_doubles)
      return better().decide(element);
    return self().exactly(element, known);
  }

  // The same row, brought into the range of double-doubles. Of a gradient dy and weight are as well: times the powers of two of
  // these exponents. An empty weight is as it was.
  struct Scaled {
    Scaling x;
    int dy = 0;
    int weight_exponent = 0;
    AffineTerm weight{};
    std::unique_ptr<Row> row{};
  };

  // Takes it in place of double_doubles_, if that is of use.
  bool take_scaled(std::unique_ptr<Scaled> scaled) {
    scaled->row->sum_up();
    if (scaled->row->double_doubles_) scaled_ = std::move(scaled);
    return scaled_ != nullptr;
  }

  std::optional<Doubles> doubles_;  // first, for its alignment
  Setting setting_;
  RowSample sample_;
  Read read_row_;
  Precision summing_ = Precision::none;
  int tries_ = 0;  // of sums in doubles
  double center_ = 0;
  std::optional<SavedStatistics> saved_;  // in place of what would be computed
  std::optional<CenteredSums> centered_;
  std::optional<DoubleDoubles> double_doubles_;
  std::unique_ptr<const Scaled> scaled_;
  mutable std::unique_ptr<const Exact> exact_;
  mutable std::mutex mutex_;  // of what is mutable

 private:
  const Row& self() const noexcept { return static_cast<const Row&>(*this); }
  Row& self() noexcept { return static_cast<Row&>(*this); }

  static const RowsIn& x_of(const RowsIn& part) noexcept { return part; }
  static const RowsIn& x_of(const GradientPart& part) noexcept { return part.x; }

  // Whether all elements are the center. Squares of deviations can be 0 where the deviations are not.
  bool is_constant() const {
    bool constant = true;
    read_row_([&](const Part& part) {
      if (!constant) return;
      for_each_element(x_of(part), [&](std::int64_t, Number x) {
        constant = constant && x.high == center_ && x.low == 0;
      });
    });
    return constant;
  }

  // The row in double-doubles, made when it is needed.
  const Row& better() const {
    const std::lock_guard lock(mutex_);
    if (!better_) {
      Setting setting = setting_;
      setting.needs_double_doubles = true;
      std::unique_ptr<Row> row = self().again(setting);
      row->sum_up();
      better_ = std::move(row);
    }
    return *better_;
  }

  mutable std::unique_ptr<Row> better_;
};

}  // namespace lnorm
