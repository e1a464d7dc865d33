#include "lnorm/measure/medians.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

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
  explicit Selection(std::int64_t rank) : rank_(rank), counts_(kDigitValues) {}

  void see(std::uint64_t key, int shift) {
    const std::uint64_t upper = shift + kDigitBits == 64 ? 0 : key >> (shift + kDigitBits);
    if (upper == found_) ++counts_[(key >> shift) % kDigitValues];
  }

  void end_pass() {
    std::size_t digit = 0;
    while (rank_ >= counts_[digit]) rank_ -= counts_[digit++];
    found_ = found_ << kDigitBits | digit;
    counts_.assign(kDigitValues, 0);
  }

  double value() const { return value_of(found_); }

 private:
  std::int64_t rank_;  // among the keys that begin with found_
  std::uint64_t found_ = 0;
  std::vector<std::int64_t> counts_;
};

// The mean of the two in the middle.
double median_of(double low, double high) {
  const double sum = low + high;
  return std::isinf(sum) ? low / 2 + high / 2 : sum / 2;
}

double median_of(std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  const bool odd = values.size() % 2 == 1;
  return median_of(odd ? *middle : *std::max_element(values.begin(), middle), *middle);
}

// By holding all values.
std::vector<double> medians_of_few(std::span<const std::int64_t> counts,
                                   const EachValue& each_value) {
  std::vector<std::vector<double>> columns(counts.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].reserve(static_cast<std::size_t>(counts[i]));
  }
  each_value([&](std::size_t column, double value) { columns[column].push_back(value); });
  std::vector<double> result;
  result.reserve(columns.size());
  for (std::vector<double>& values : columns) result.push_back(median_of(values));
  return result;
}

}  // namespace

std::vector<double> medians(std::span<const std::int64_t> counts, const EachValue& each_value,
                            std::int64_t most_held) {
  if (std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) <= most_held) {
    return medians_of_few(counts, each_value);
  }
  std::vector<std::array<Selection, 2>> middles;  // which are one where the count is odd
  for (const std::int64_t count : counts) {
    middles.push_back({Selection((count - 1) / 2), Selection(count / 2)});
  }
  for (int shift = 64 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    each_value([&](std::size_t column, double value) {
      const std::uint64_t key = key_of(value);
      for (Selection& middle : middles[column]) middle.see(key, shift);
    });
    for (std::size_t column = 0; column < counts.size(); ++column) {
      if (counts[column] == 0) continue;
      for (Selection& middle : middles[column]) middle.end_pass();
    }
  }
  std::vector<double> result;
  for (std::size_t column = 0; column < counts.size(); ++column) {
    const auto& [lower, upper] = middles[column];
    result.push_back(counts[column] == 0 ? std::numeric_limits<double>::quiet_NaN()
                                         : median_of(lower.value(), upper.value()));
  }
  return result;
}

}  // namespace lnorm
