#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lnorm {

// Counts of finite numbers in bins of one width, of a range that need not be known beforehand: bins
// are the intervals [i w, (i + 1) w) of a width w that is a power of two, and grow by joining two
// and two, so that the result depends on the numbers alone and not on their order. Memory is fixed.
class Histogram {
 public:
  Histogram();

  // NaN and infinities are left out.
  void add(double value);

  std::int64_t count() const noexcept { return count_; }
  double min() const noexcept { return min_; }  // where count() > 0
  double max() const noexcept { return max_; }

  // The same counts in at most that many bins, which cover min() to max() and are all the same
  // number of the fine ones wide; of integers, whole numbers.
  struct Bins {
    double begin;  // of the first bin
    double width;
    std::vector<std::int64_t> counts;
  };
  Bins bins(std::size_t most) const;

 private:
  std::int64_t index_of(double value) const;
  std::size_t fine_per_bin(std::size_t used, std::size_t most) const;
  void set_exponent(int exponent);
  void widen(int exponent);

  static constexpr std::size_t kBins = 4096;

  std::int64_t count_ = 0;
  double min_ = 0;
  double max_ = 0;
  int exponent_ = 0;        // w = 2^exponent_
  double scale_ = 1;        // 1 / w
  bool integers_ = true;    // so far
  std::int64_t first_ = 0;  // index of the first bin
  std::vector<std::int64_t> counts_;
};

}  // namespace lnorm
