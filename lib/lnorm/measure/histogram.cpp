#include "lnorm/measure/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

namespace lnorm {

namespace {

using Bin = ValueCounts::Bin;
using Bins = std::span<const Bin>;

// ---- The range.

// The bin of a number by its rank, from 0.
const Bin& bin_of(std::int64_t rank, Bins bins) {
  auto bin = bins.begin();
  while (rank >= bin->count) rank -= (bin++)->count;
  return *bin;
}

// Without outliers.
Bins bins_in_range(Bins bins, std::int64_t count) {
  constexpr double kFar = 5;
  double lower = 0;
  double upper = 0;
  std::int64_t beyond = count;
  do {
    beyond /= beyond == count ? 4 : 2;
    if (beyond == 0) return bins;
    lower = bin_of(beyond, bins).low;
    upper = bin_of(count - 1 - beyond, bins).high;
  } while (lower == upper);
  const double far = kFar * (upper - lower);
  const auto first = std::find_if(bins.begin(), bins.end(),
                                  [&](const Bin& bin) { return bin.low >= lower - far; });
  const auto end = std::find_if(bins.rbegin(), bins.rend(), [&](const Bin& bin) {
                     return bin.high <= upper + far;
                   }).base();
  const Bins result(first, end);
  const double range = result.back().high - result.front().low;
  return bins.back().high / 2 - bins.front().low / 2 > range ? result : bins;
}

std::int64_t sum(Bins bins) {
  std::int64_t result = 0;
  for (const Bin& bin : bins) result += bin.count;
  return result;
}

// ---- Multiples of a power of two.

constexpr int kDigits = std::numeric_limits<double>::digits;

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

// The borders of bins that are one value each; nothing if there are too many multiples.
std::optional<Histogram::Bars> bars_of_multiples(Bins bins, std::size_t most) {
  int divisor = std::numeric_limits<double>::max_exponent;
  for (const Bin& bin : bins) {
    if (bin.low != 0) divisor = std::min(divisor, divisor_of(bin.low));
  }
  const double low = bins.front().low;
  const auto multiples_to = [&](double value) { return std::ldexp(value - low, -divisor); };
  const bool countable = multiples_to(bins.back().low) < static_cast<double>(ValueCounts::kMax);
  if (!countable || divisor <= std::numeric_limits<double>::min_exponent) return {};
  const auto index_of = [&](double value) { return static_cast<std::size_t>(multiples_to(value)); };
  const std::size_t per_bar = multiples_per_bar(index_of(bins.back().low) + 1, most);
  Histogram::Bars bars;
  bars.counts.resize(index_of(bins.back().low) / per_bar + 1);
  for (const Bin& bin : bins) bars.counts[index_of(bin.low) / per_bar] += bin.count;
  const double half = std::ldexp(1, divisor - 1);
  bars.low = low - half;
  bars.high = std::min(low - half + 2 * half * static_cast<double>(bars.counts.size() * per_bar),
                       std::numeric_limits<double>::max());
  return bars;
}

// ---- Any numbers.

Histogram::Bars bars_of_range(Bins bins, double low, double high, std::size_t most) {
  Histogram::Bars bars{low, high, std::vector<std::int64_t>(most)};
  const double scale = std::isfinite(high - low) ? 1 : 0.5;  // or the range would overflow
  const double range = high * scale - low * scale;
  const auto last = static_cast<double>(most);
  // In bars.
  const auto place_of = [&](double value) {
    return std::clamp((value * scale - low * scale) / range * last, 0.0, last);
  };
  for (const Bin& bin : bins) {
    const double begin = place_of(bin.low);
    const double end = place_of(bin.high);
    std::int64_t done = 0;
    for (std::size_t bar = std::min(static_cast<std::size_t>(begin), most - 1); done < bin.count;
         ++bar) {
      const auto border = static_cast<double>(bar + 1);
      const bool all = end <= border || bar == most - 1;
      const double part = all ? 1 : (border - begin) / (end - begin);
      const std::int64_t so_far =
          all ? bin.count : std::llround(part * static_cast<double>(bin.count));
      bars.counts[bar] += so_far - done;
      done = so_far;
    }
  }
  return bars;
}

}  // namespace

void Histogram::add(std::span<const double> values) {
  while (!values.empty()) {
    const auto end = std::find_if_not(values.begin(), values.end(),
                                      [](double value) { return std::isfinite(value); });
    const auto finite = values.first(static_cast<std::size_t>(end - values.begin()));
    if (!finite.empty()) {
      const auto [min, max] = std::minmax_element(finite.begin(), finite.end());
      add_finite(finite, *min, *max);
    }
    values = values.subspan(finite.size());
    if (values.empty()) return;
    const double value = values.front();
    ++(std::isnan(value) ? nans_ : value < 0 ? minus_infinities_ : infinities_);
    values = values.subspan(1);
  }
}

void Histogram::add_finite(std::span<const double> values, double min, double max) {
  values_.add(values);
  take_finite(std::ssize(values), min, max);
}

void Histogram::add_finite_floats(std::span<const std::byte> values, double min, double max) {
  values_.add_floats(values);
  take_finite(std::ssize(values) / static_cast<std::int64_t>(sizeof(float)), min, max);
}

void Histogram::take_finite(std::int64_t count, double min, double max) {
  min_ = count_ == 0 ? min : std::min(min_, min);
  max_ = count_ == 0 ? max : std::max(max_, max);
  count_ += count;
}

void Histogram::merge(const Histogram& other) {
  nans_ += other.nans_;
  minus_infinities_ += other.minus_infinities_;
  infinities_ += other.infinities_;
  if (other.count_ == 0) return;
  take_finite(other.count_, other.min_, other.max_);
  values_.merge(other.values_);
}

Histogram::Bars Histogram::bars(std::size_t most) const {
  if (min_ == max_) return {min_, max_, {count_}};
  const std::vector<Bin> all = values_.bins();
  const Bins bins = bins_in_range(all, count_);
  const bool cut_below = bins.data() != all.data();
  const bool cut_above = &bins.back() != &all.back();
  std::optional<Bars> result;
  if (values_.exact()) result = bars_of_multiples(bins, most);
  if (!result) {
    result = bars_of_range(bins, cut_below ? bins.front().low : min_,
                           cut_above ? bins.back().high : max_, most);
  }
  result->below = sum(Bins(all.data(), bins.data()));
  result->above = sum(Bins(bins.data() + bins.size(), all.data() + all.size()));
  return *result;
}

std::vector<std::int64_t> Histogram::counts(std::span<const double> borders) const {
  const std::vector<Bin> bins = values_.bins();
  // Counts the numbers below a border, or equal to it if that is the last one.
  const auto below = [&](double border, bool is_last) {
    // The bins at the ends go beyond the numbers.
    if (border > max_ || (is_last && border == max_)) return count_;
    std::int64_t count = 0;
    if (border <= min_) return count;
    for (const Bin& bin : bins) {
      if (bin.high < border || (is_last && bin.high == border)) {
        count += bin.count;
        continue;
      }
      if (bin.low < border) {
        const double part = (border / 2 - bin.low / 2) / (bin.high / 2 - bin.low / 2);
        count += std::llround(part * static_cast<double>(bin.count));
      }
      break;
    }
    return count;
  };
  std::vector<std::int64_t> result;
  std::int64_t before = below(borders.front(), false);
  for (std::size_t i = 1; i < borders.size(); ++i) {
    const std::int64_t count = below(borders[i], i + 1 == borders.size());
    result.push_back(count - before);
    before = count;
  }
  return result;
}

}  // namespace lnorm
