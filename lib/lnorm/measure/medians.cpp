#include "lnorm/measure/medians.hpp"

#include <array>
#include <bit>
#include <numeric>
#include <optional>

#include "lnorm/core/non_finite.hpp"

namespace lnorm {

namespace {

constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;

// Integers in the order of the doubles.
std::uint64_t key_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}

double value_of(std::uint64_t key) {
  return std::bit_cast<double>((key & kSignBit) != 0 ? key & ~kSignBit : ~key);
}

constexpr int kDigitBits = 8;
constexpr std::size_t kDigitValues = std::size_t{1} << kDigitBits;

// Finds the value of a rank by its key's digits, the highest first: every pass counts the digits of
// the keys that begin with those found so far.
class Selection {
 public:
  // counts: of the digits of a pass, kDigitValues numbers.
  Selection(std::int64_t rank, std::int64_t* counts) : rank_(rank), counts_(counts) {}

  void see(std::uint64_t key, int shift) {
    const std::uint64_t upper = shift + kDigitBits == 64 ? 0 : key >> (shift + kDigitBits);
    if (upper == found_) ++counts_[(key >> shift) % kDigitValues];
  }

  void end_pass() {
    std::size_t digit = 0;
    while (rank_ >= counts_[digit]) rank_ -= counts_[digit++];
    found_ = found_ << kDigitBits | digit;
  }

  double value() const { return value_of(found_); }

 private:
  std::int64_t rank_;  // among the keys that begin with found_
  std::int64_t* counts_;
  std::uint64_t found_ = 0;
};

// The median of values around the middle of a column, without those before them. They have both values in the middle.
double median_of(std::vector<double>& values, std::int64_t count, std::int64_t before) {
  const auto middle = values.begin() + (count / 2 - before);
  std::nth_element(values.begin(), middle, values.end());
  return std::midpoint(count % 2 == 1 ? *middle : *std::max_element(values.begin(), middle),
                       *middle);
}

// How many values of a column are a sample, or up to twice as many. A larger one leaves fewer values to be sorted:
// 8 n / sqrt(sample) of n.
constexpr std::int64_t kSample = 4096;
constexpr std::int64_t kMaxSample = 65536;
std::int64_t sample_of(std::int64_t count) { return std::clamp(count / 64, kSample, kMaxSample); }

// Between which values the median of random ones lies: the middle of a sample of n is off by sqrt(n) / 2 places, seldom
// by eight times that.
struct Interval {
  double low;
  double high;
};
Interval bounds_of(std::vector<double>& sample) {
  if (sample.empty()) return {};
  const auto size = std::ssize(sample);
  const auto far = static_cast<std::int64_t>(4 * std::sqrt(static_cast<double>(size)));
  const auto low = sample.begin() + std::max<std::int64_t>(0, size / 2 - far);
  const auto high = sample.begin() + std::min(size - 1, size / 2 + far);
  std::nth_element(sample.begin(), low, sample.end());
  if (low != high) std::nth_element(low + 1, high, sample.end());
  return {*low, *high};
}

// The values of a column that lie between two.
struct Within {
  Interval bounds;
  std::int64_t below = 0;
  std::int64_t inside = 0;
  std::vector<double>
      values;  // those inside; none where the bounds are one number, which all of them are

  // Returns how many it keeps.
  std::int64_t see(std::span<const double> more) {
    const std::int64_t found = bounds.low == bounds.high ? count(more) : keep(more);
    inside += found;
    return bounds.low == bounds.high ? 0 : found;
  }

  // Nothing if the middle of so many lies elsewhere.
  std::optional<double> median(std::int64_t count) {
    if (below > (count - 1) / 2 || count / 2 >= below + inside) return std::nullopt;
    return values.empty() ? bounds.low : median_of(values, count, below);
  }

 private:
  std::int64_t count(std::span<const double> more) {
    std::int64_t same = 0;
    for (const double value : more) {
      below += static_cast<std::int64_t>(value < bounds.low);
      same += static_cast<std::int64_t>(value == bounds.low);
    }
    return same;
  }

  // Whether to keep a value is no branch: a guess would often be wrong.
  std::int64_t keep(std::span<const double> more) {
    const auto [low, high] = bounds;
    const std::size_t before = values.size();
    values.resize(before + more.size());
    double* end = values.data() + before;
    std::int64_t less = 0;
    for (const double value : more) {
      *end = value;
      less += static_cast<std::int64_t>(value < low);
      end += static_cast<std::ptrdiff_t>(value >= low) & static_cast<std::ptrdiff_t>(value <= high);
    }
    below += less;
    values.resize(static_cast<std::size_t>(end - values.data()));
    return std::ssize(values) - static_cast<std::int64_t>(before);
  }
};

// Nothing if the sample misleads, or too many values lie where it points to, or would be in the sample.
std::optional<std::vector<double>> medians_by_sample(std::span<const std::int64_t> counts,
                                                     const EachValue& each_value,
                                                     std::int64_t most_held) {
  if (counts.empty()) return std::vector<double>();
  const std::int64_t most = *std::max_element(counts.begin(), counts.end());
  const std::int64_t in_sample = sample_of(most);
  if (2 * in_sample * std::ssize(counts) > most_held) return std::nullopt;
  const std::int64_t step = std::max<std::int64_t>(1, most / in_sample);
  std::vector<Within> columns(counts.size());
  each_value(step, [&](std::size_t i, std::span<const double> values) {
    std::vector<double>& sample = columns[i].values;
    sample.insert(sample.end(), values.begin(), values.end());
  });
  std::int64_t held = 0;
  if (step == 1) {  // the sample has all values
    for (Within& column : columns) column.inside = std::ssize(column.values);
  } else {
    for (Within& column : columns) {
      column.bounds = bounds_of(column.values);
      column.values.clear();
    }
    each_value(1, [&](std::size_t i, std::span<const double> values) {
      if (held <= most_held) held += columns[i].see(values);
    });
  }
  if (held > most_held) return std::nullopt;
  std::vector<double> result(counts.size(), kNan);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (counts[i] == 0) continue;
    const auto median = columns[i].median(counts[i]);
    if (!median) return std::nullopt;
    result[i] = *median;
  }
  return result;
}

std::vector<double> medians_by_digits(std::span<const std::int64_t> counts,
                                      const EachValue& each_value, const AddUp& add_up) {
  std::vector<std::int64_t> digits(2 * kDigitValues * counts.size());
  std::vector<std::array<Selection, 2>> middles;  // which are one where the count is odd
  for (std::int64_t* of_column = digits.data(); const std::int64_t count : counts) {
    middles.push_back(
        {Selection((count - 1) / 2, of_column), Selection(count / 2, of_column + kDigitValues)});
    of_column += 2 * kDigitValues;
  }
  for (int shift = 64 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    std::fill(digits.begin(), digits.end(), 0);
    each_value(1, [&](std::size_t column, std::span<const double> values) {
      for (const double value : values) {
        const std::uint64_t key = key_of(value);
        for (Selection& middle : middles[column]) middle.see(key, shift);
      }
    });
    if (add_up) add_up(digits);
    for (std::size_t column = 0; column < counts.size(); ++column) {
      if (counts[column] == 0) continue;
      for (Selection& middle : middles[column]) middle.end_pass();
    }
  }
  std::vector<double> result;
  for (std::size_t column = 0; column < counts.size(); ++column) {
    const auto& [lower, upper] = middles[column];
    result.push_back(counts[column] == 0 ? kNan : std::midpoint(lower.value(), upper.value()));
  }
  return result;
}

}  // namespace

std::vector<double> medians(std::span<const std::int64_t> counts, const EachValue& each_value,
                            std::int64_t most_held, const AddUp& add_up) {
  if (!add_up) {
    if (const auto found = medians_by_sample(counts, each_value, most_held)) return *found;
  }
  return medians_by_digits(counts, each_value, add_up);
}

}  // namespace lnorm
