#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "lnorm/measure/raw_elements.hpp"
#include "lnorm/measure/ulp.hpp"

// The rows to which compared elements belong.
namespace lnorm {

// What errors are measured by in a row.
struct RowScale {
  double greatest = kNoneFinite;  // finite |expected|
  // At that, in the dtype of distances; 0 where the greatest is 0 or there is none: there plain ulp count.
  double ulp = 0;
};
inline RowScale scale_of_row(double greatest, DType dtype) {
  return {greatest, greatest > 0 ? ulp_at(greatest, dtype) : 0};
}

// Successive elements of a row, from a column on.
struct RowRun {
  std::int64_t count = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  RowScale scale = {};
  std::int64_t skipped = 0;  // elements before it that a mask leaves out
};

// How many elements of a row there are and how many do not pass, and how far they are off at most.
struct RowErrors {
  std::int64_t row = 0;
  std::int64_t elements = 0;
  std::int64_t mismatched = 0;
  double max_abs = kNoneFinite;  // kNoneFinite: nowhere both are finite

  void append(const RowErrors& next) noexcept {
    elements += next.elements;
    mismatched += next.mismatched;
    max_abs = std::max(max_abs, next.max_abs);
  }
};

// A set of numbers from 0 on, a bit each, once there is one.
class NumberBits {
 public:
  void add(std::int64_t number) {
    const auto word = static_cast<std::size_t>(number / 64);
    if (word >= words_.size()) words_.resize(word + 1);
    words_[word] |= std::uint64_t{1} << number % 64;
  }
  // Adds first + k for each bit k that is set.
  void add_bits(std::int64_t first, std::uint64_t bits) {
    const auto word = static_cast<std::size_t>(first / 64);
    const auto shift = static_cast<int>(first % 64);
    if (word + 2 > words_.size()) words_.resize(word + 2);
    words_[word] |= bits << shift;
    if (shift > 0) words_[word + 1] |= bits >> (64 - shift);
  }
  void append(const NumberBits& other) {
    words_.resize(std::max(words_.size(), other.words_.size()));
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void remove(const NumberBits& other) {
    for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i) {
      words_[i] &= ~other.words_[i];
    }
  }
  void clear() noexcept { words_.clear(); }
  std::int64_t count() const {
    return std::transform_reduce(words_.begin(), words_.end(), std::int64_t{0}, std::plus(),
                                 [](std::uint64_t word) { return std::popcount(word); });
  }
  bool contains(std::int64_t number) const {
    const auto word = static_cast<std::size_t>(number / 64);
    return word < words_.size() && (words_[word] >> number % 64 & 1) != 0;
  }

  // The least one from there on; -1 if there is none.
  std::int64_t next(std::int64_t from) const {
    auto word = static_cast<std::size_t>(from / 64);
    if (word >= words_.size()) return -1;
    std::uint64_t bits = words_[word] >> from % 64 << from % 64;
    while (bits == 0 && ++word < words_.size()) bits = words_[word];
    return bits == 0 ? -1 : static_cast<std::int64_t>(64 * word) + std::countr_zero(bits);
  }
  // So many from there on, in ascending order.
  std::vector<std::int64_t> numbers(std::int64_t from, std::int64_t most) const {
    std::vector<std::int64_t> result;
    for (std::int64_t one = next(from); one >= 0 && std::ssize(result) < most;
         one = next(one + 1)) {
      result.push_back(one);
    }
    return result;
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(words_);
  }

 private:
  std::vector<std::uint64_t> words_;
};

// Where pairs are that do not pass.
struct MismatchPlaces {
  bool wants_all_rows = false;  // those without one as well
  std::vector<RowErrors> rows;  // one after another
  NumberBits columns;

  void clear() noexcept {
    rows.clear();
    columns.clear();
  }
  void add(const RowErrors& run) {
    if (run.mismatched == 0 && !wants_all_rows) return;
    if (!rows.empty() && rows.back().row == run.row) return rows.back().append(run);
    rows.push_back(run);
  }
};

}  // namespace lnorm
