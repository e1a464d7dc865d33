#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lnorm/measure/value_counts.hpp"

namespace lnorm {

// Counts of numbers in bars of one width, of a range that need not be known beforehand. It depends on
// the numbers alone, and not on their order. Memory is fixed (that of ValueCounts).
class Histogram {
 public:
  void add(double value) { add({&value, 1}); }
  void add(std::span<const double> values);

  // Finite numbers from min to max, of which both are among them. Floats are in native byte order, at any address.
  void add_finite(std::span<const double> values, double min, double max);
  void add_finite_floats(std::span<const std::byte> values, double min, double max);

  // The numbers of both.
  void merge(const Histogram& other);

  // core/serialize.hpp calls it.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(values_, count_, nans_, minus_infinities_, infinities_, min_, max_);
  }

  std::int64_t count() const noexcept { return count_; }  // of finite numbers, as all that follows
  double min() const noexcept { return min_; }            // where count() > 0
  double max() const noexcept { return max_; }

  std::int64_t nans() const noexcept { return nans_; }
  std::int64_t minus_infinities() const noexcept { return minus_infinities_; }
  std::int64_t infinities() const noexcept { return infinities_; }

  struct Bars {
    double low = 0;   // where the first bar begins
    double high = 0;  // where the last one ends
    // A bar has its left border and not its right one, but for the last.
    std::vector<std::int64_t> counts;
    std::int64_t below = 0;  // outliers, which lie beside the bars
    std::int64_t above = 0;
  };

  // At most that many bars, where count() > 0.
  //
  // Their range. The quartiles are the numbers that have a quarter of all on their far side; where these
  // two are one number, an eighth, a sixteenth and so on. What lies farther from them than five times
  // their distance is an outlier, if the range of the others is less than half of all. The bars go from
  // the least number that is no outlier to the greatest.
  //
  // Takes numbers that are multiples of a power of two, at most ValueCounts::kMax of them in the range, such as
  // integers, every bar has as many multiples as another, so that even numbers look even; the last one may
  // have fewer. The range then goes half a multiple farther at either end.
  //
  // The counts are exact for up to ValueCounts::kMax different numbers; of more, a border divides
  // the count of a bin that it cuts by length.
  Bars bars(std::size_t most) const;

  // How many finite numbers there are between neighboring borders, which ascend: with the left border, without the right
  // one but for the last. Counts are as exact as those of bars.
  std::vector<std::int64_t> counts(std::span<const double> borders) const;

 private:
  void take_finite(std::int64_t count, double min, double max);

  ValueCounts values_;
  std::int64_t count_ = 0;
  std::int64_t nans_ = 0;
  std::int64_t minus_infinities_ = 0;
  std::int64_t infinities_ = 0;
  double min_ = 0;
  double max_ = 0;
};

}  // namespace lnorm
