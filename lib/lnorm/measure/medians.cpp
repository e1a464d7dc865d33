#include "lnorm/measure/medians.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace lnorm {

namespace {

constexpr std::uint64_t kSign = std::uint64_t{1} << 63;

// Integers in the order of the doubles.
std::uint64_t key_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

double value_of(std::uint64_t key) {
  return std::bit_cast<double>((key & kSign) != 0 ? key & ~kSign : ~key);
}

constexpr int kDigitBits = 8;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

// Finds the value of a rank by its key's digits, the highest first: every pass counts the digits of
// the keys that begin with those found so far.
class Selection {
 public:
  explicit Selection(std::int64_t rank) : rank_(rank), counts_(kDigits) {}

  void see(std::uint64_t key, int shift) {
    const std::uint64_t upper = shift + kDigitBits == 64 ? 0 : key >> (shift + kDigitBits);
    if (upper == found_) ++counts_[(key >> shift) % kDigits];
  }

  void end_pass() {
    std::size_t digit = 0;
    while (rank_ >= counts_[digit]) rank_ -= counts_[digit++];
    found_ = found_ << kDigitBits | digit;
    counts_.assign(kDigits, 0);
  }

  double value() const { return value_of(found_); }

 private:
  std::int64_t rank_;  // among the keys that begin with found_
  std::uint64_t found_ = 0;
  std::vector<std::int64_t> counts_;
};

}  // namespace

std::vector<double> medians(std::span<const std::int64_t> counts, const EachValue& each_value) {
  std::vector<Selection> lower;
  std::vector<Selection> upper;  // the same where the count is odd
  for (const std::int64_t count : counts) {
    lower.emplace_back((count - 1) / 2);
    upper.emplace_back(count / 2);
  }
  for (int shift = 64 - kDigitBits; shift >= 0; shift -= kDigitBits) {
    each_value([&](std::size_t column, double value) {
      const std::uint64_t key = key_of(value);
      lower[column].see(key, shift);
      upper[column].see(key, shift);
    });
    for (std::size_t column = 0; column < counts.size(); ++column) {
      if (counts[column] == 0) continue;
      lower[column].end_pass();
      upper[column].end_pass();
    }
  }
  std::vector<double> result;
  for (std::size_t column = 0; column < counts.size(); ++column) {
    const double low = lower[column].value();
    const double high = upper[column].value();
    const double sum = low + high;
    result.push_back(counts[column] == 0 ? std::numeric_limits<double>::quiet_NaN()
                     : std::isinf(sum)   ? low / 2 + high / 2
                                         : sum / 2);
  }
  return result;
}

}  // namespace lnorm
