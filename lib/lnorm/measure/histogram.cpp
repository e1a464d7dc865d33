#include "lnorm/measure/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace lnorm {

namespace {

constexpr int kDigits = std::numeric_limits<double>::digits;

// Bins as narrow as a number's last place, but that 1 / w is a double, too.
int finest_exponent(double value) {
  constexpr int kLeast = -1022;
  return value == 0 ? kLeast : std::max(std::ilogb(value) - (kDigits - 1), kLeast);
}

std::int64_t index_at(double value, double scale) {
  const double bin = value * scale;
  if (bin == 0 && value < 0) return -1;  // far less than a bin below zero: underflowed
  return static_cast<std::int64_t>(std::floor(bin));
}

// The exponent of the greatest power of two that divides a number other than 0.
int divisor_of(double value) {
  int exponent = 0;
  const double digits = std::ldexp(std::frexp(std::fabs(value), &exponent), kDigits);
  return exponent - kDigits + std::countr_zero(static_cast<std::uint64_t>(digits));
}

constexpr std::size_t ceil_of_quotient(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// How many of the multiples make one bar. A last bar that has few of them would look like a drop.
std::size_t multiples_per_bar(std::size_t multiples, std::size_t most) {
  const std::size_t least = ceil_of_quotient(multiples, most);
  const auto missing = [&](std::size_t per_bar) {
    return ceil_of_quotient(multiples, per_bar) * per_bar - multiples;
  };
  std::size_t best = least;
  for (std::size_t per_bar = least; per_bar <= least + least / 4; ++per_bar) {
    if (missing(per_bar) < missing(best)) best = per_bar;
  }
  return best;
}

}  // namespace

Histogram::Histogram()
    : divisor_(std::numeric_limits<double>::max_exponent), counts_(std::size_t{kBins}) {}

std::int64_t Histogram::index_of(double value) const { return index_at(value, scale_); }

std::int64_t Histogram::count_of(std::int64_t index) const {
  return counts_[static_cast<std::size_t>(index & (kBins - 1))];
}

// Joins bins until their width is 2^exponent.
void Histogram::widen(int exponent) {
  const int shift = std::min(exponent - exponent_, 63);
  std::vector<std::int64_t> joined(counts_.size());
  for (std::int64_t index = index_of(min_); index <= index_of(max_); ++index) {
    joined[static_cast<std::size_t>((index >> shift) & (kBins - 1))] += count_of(index);
  }
  counts_ = std::move(joined);
  set_exponent(exponent);
}

void Histogram::set_exponent(int exponent) {
  exponent_ = exponent;
  scale_ = std::ldexp(1, -exponent);
}

// Makes room for a number outside of what there was.
void Histogram::reach(double value) {
  if (count_ == 0) {
    min_ = max_ = value;
    return set_exponent(finest_exponent(value));
  }
  const double min = std::min(min_, value);
  const double max = std::max(max_, value);
  // Fine enough for the larger end is fine enough for the smaller one, too.
  int exponent = std::max({exponent_, finest_exponent(min), finest_exponent(max)});
  const auto bins = [&] {
    const double scale = std::ldexp(1, -exponent);
    return index_at(max, scale) - index_at(min, scale) + 1;
  };
  while (bins() > kBins) ++exponent;
  if (exponent > exponent_) widen(exponent);
  min_ = min;
  max_ = max;
}

void Histogram::add(double value) {
  if (!std::isfinite(value)) {
    ++left_out_;
    return;
  }
  if (count_ == 0 || value < min_ || value > max_) reach(value);
  if (divisor_ >= exponent_ && value != 0) divisor_ = std::min(divisor_, divisor_of(value));
  ++counts_[static_cast<std::size_t>(index_of(value) & (kBins - 1))];
  ++count_;
}

std::vector<std::int64_t> Histogram::bars(std::size_t most) const {
  if (min_ == max_) return {count_};
  if (divisor_ >= exponent_) return bars_of_multiples(most);
  const std::int64_t first = index_of(min_);
  const std::int64_t used = index_of(max_) - first + 1;
  std::vector<std::int64_t> result(std::min(most, static_cast<std::size_t>(used)));
  // Where the middle of a fine bin lies between min_ and max_, in bars.
  const double begin = min_ * scale_ - static_cast<double>(first);
  const double per_fine = static_cast<double>(result.size()) / (max_ * scale_ - min_ * scale_);
  const auto last = static_cast<double>(result.size() - 1);
  for (std::int64_t i = 0; i < used; ++i) {
    const double bar = (static_cast<double>(i) + 0.5 - begin) * per_fine;
    result[static_cast<std::size_t>(std::clamp(bar, 0.0, last))] += count_of(first + i);
  }
  return result;
}

std::vector<std::int64_t> Histogram::bars_of_multiples(std::size_t most) const {
  const std::int64_t first = index_of(min_);
  const int shift = divisor_ - exponent_;  // 2^shift fine bins from one multiple to the next
  const auto multiples = static_cast<std::size_t>((index_of(max_) - first) >> shift) + 1;
  const std::size_t per_bar = multiples_per_bar(multiples, most);
  std::vector<std::int64_t> result(ceil_of_quotient(multiples, per_bar));
  for (std::size_t i = 0; i < multiples; ++i) {
    result[i / per_bar] += count_of(first + (static_cast<std::int64_t>(i) << shift));
  }
  return result;
}

}  // namespace lnorm
