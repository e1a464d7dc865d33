#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lnorm {

// Counts of finite numbers in bars of one width, of a range that need not be known beforehand. They
// are counted in fine bins [i w, (i + 1) w) of a width w that is a power of two, and which are joined
// two and two where the range outgrows them, so that the result depends on the numbers alone and not
// on their order. Memory is fixed (512 KiB).
class Histogram {
 public:
  Histogram();

  // NaN and infinities are left out.
  void add(double value);

  std::int64_t count() const noexcept { return count_; }
  std::int64_t left_out() const noexcept { return left_out_; }
  double min() const noexcept { return min_; }  // where count() > 0
  double max() const noexcept { return max_; }

  // The counts of at most that many bars from min() to max(), where count() > 0. A bar has its left
  // border and not its right one, but for the last; a number nearer to a border than a 32768th of the
  // range may be counted on its other side.
  // Of numbers that are multiples of a power of two not much finer than that, such as integers, every
  // bar has as many multiples as another, so that even numbers look even; the last one may have
  // fewer, and the counts are exact.
  std::vector<std::int64_t> bars(std::size_t most) const;

 private:
  void reach(double value);
  void widen(int exponent);
  void set_exponent(int exponent);
  std::int64_t index_of(double value) const;
  std::int64_t count_of(std::int64_t index) const;
  std::vector<std::int64_t> bars_of_multiples(std::size_t most) const;

  static constexpr std::int64_t kBins = 65536;

  std::int64_t count_ = 0;
  std::int64_t left_out_ = 0;
  double min_ = 0;
  double max_ = 0;
  int exponent_ = 0;  // w = 2^exponent_
  double scale_ = 1;  // 1 / w
  int divisor_;       // 2^divisor_ divides all numbers; not kept up once it is less than w
  std::vector<std::int64_t> counts_;  // bin i is in place i modulo kBins
};

}  // namespace lnorm
