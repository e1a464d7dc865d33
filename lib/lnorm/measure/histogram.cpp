#include "lnorm/measure/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lnorm {

namespace {

// The finest width that is used about a value: some bits coarser than the value's own last place.
int finest_exponent(double value) {
  constexpr int kLeast = -1000;
  return value == 0 ? kLeast : std::max(std::ilogb(value) - 50, kLeast);
}

}  // namespace

Histogram::Histogram() : counts_(kBins) {}

std::int64_t Histogram::index_of(double value) const {
  const double bin = value * scale_;
  if (bin == 0 && value < 0) return -1;  // far less than a bin below zero: underflowed
  return static_cast<std::int64_t>(std::floor(bin));
}

void Histogram::set_exponent(int exponent) {
  exponent_ = exponent;
  scale_ = std::ldexp(1, -exponent);
}

// Joins bins until their width is 2^exponent.
void Histogram::widen(int exponent) {
  const int shift = std::min(exponent - exponent_, 63);
  set_exponent(exponent);
  const std::int64_t first = first_ >> shift;
  std::vector<std::int64_t> joined(kBins);
  for (std::size_t i = 0; i < kBins; ++i) {
    if (counts_[i] == 0) continue;
    const std::int64_t index = (first_ + static_cast<std::int64_t>(i)) >> shift;
    joined[static_cast<std::size_t>(index - first)] += counts_[i];
  }
  first_ = first;
  counts_ = std::move(joined);
}

void Histogram::add(double value) {
  if (!std::isfinite(value)) return;
  integers_ = integers_ && value == std::nearbyint(value);
  if (count_++ == 0) {
    min_ = max_ = value;
    set_exponent(finest_exponent(value));
    first_ = index_of(value);
  } else if (value < min_ || value > max_) {
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    // Fine enough for the larger end is fine enough for the smaller one, too.
    const int exponent = std::max({exponent_, finest_exponent(min_), finest_exponent(max_)});
    if (exponent > exponent_) widen(exponent);
    while (index_of(max_) - index_of(min_) >= static_cast<std::int64_t>(kBins)) {
      widen(exponent_ + 1);
    }
    const std::int64_t first = index_of(min_);
    if (first < first_) {
      // What moves out at the back is empty: it lies beyond max_.
      std::rotate(counts_.begin(), counts_.end() - (first_ - first), counts_.end());
      first_ = first;
    } else if (index_of(max_) - first_ >= static_cast<std::int64_t>(kBins)) {
      std::rotate(counts_.begin(), counts_.begin() + (first - first_), counts_.end());
      first_ = first;
    }
  }
  ++counts_[static_cast<std::size_t>(index_of(value) - first_)];
}

Histogram::Bins Histogram::bins(std::size_t most) const {
  const auto first = static_cast<std::size_t>(index_of(min_) - first_);
  const auto used = static_cast<std::size_t>(index_of(max_) - first_) - first + 1;
  const std::size_t per_bin = fine_per_bin(used, most);
  const double begin = (static_cast<double>(first_) + static_cast<double>(first)) / scale_;
  Bins result{std::max(begin, std::numeric_limits<double>::lowest()),
              static_cast<double>(per_bin) / scale_,
              std::vector<std::int64_t>((used + per_bin - 1) / per_bin)};
  for (std::size_t i = 0; i < used; ++i) result.counts[i / per_bin] += counts_[first + i];
  return result;
}

// How many fine bins make one, so that used of them fit into most.
std::size_t Histogram::fine_per_bin(std::size_t used, std::size_t most) const {
  const std::size_t least = (used + most - 1) / most;
  if (integers_ && exponent_ < 0 && exponent_ > -64) {
    // As many integers in one bin as in another.
    const std::size_t unit = std::size_t{1} << -exponent_;
    return (least + unit - 1) / unit * unit;
  }
  // A last bin that is mostly beyond the largest number would look like a drop.
  std::size_t best = least;
  const auto beyond = [&](std::size_t per_bin) { return (per_bin - used % per_bin) % per_bin; };
  for (std::size_t per_bin = least; per_bin <= least + least / 4; ++per_bin) {
    if (beyond(per_bin) < beyond(best)) best = per_bin;
  }
  return best;
}

}  // namespace lnorm
