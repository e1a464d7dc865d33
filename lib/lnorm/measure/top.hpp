#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/moments.hpp"
#include "lnorm/core/non_finite.hpp"

// What stands out most.
namespace lnorm {

enum class TopBy { mean, variance, variance_min, absmax, zeros, non_finite };
inline std::string_view name(TopBy by) {
  constexpr std::string_view kNames[] = {"mean",   "variance", "variance-min",
                                         "absmax", "zeros",    "non-finite"};
  return kNames[static_cast<std::size_t>(by)];
}

// By how much a row stands out; NaN, which comes last, for one that is not finite.
inline double score_of_row(TopBy by, const Moments& row) noexcept {
  if (by == TopBy::non_finite) return static_cast<double>(row.non_finite);
  if (by == TopBy::mean) return std::fabs(row.mean);
  if (by == TopBy::variance) return row.variance;
  if (by == TopBy::variance_min) return -row.variance;
  return row.non_finite > 0 ? row.mean : std::max(std::fabs(row.min), std::fabs(row.max));
}

// Whether there is something to stand out by: a number, and not none of what is counted.
inline bool stands_out(TopBy by, double score) noexcept {
  const bool is_count = by == TopBy::zeros || by == TopBy::non_finite;
  return is_count ? score > 0 : !std::isnan(score);
}

// Whether a score is ahead of another.
inline bool is_ahead(double a, double b) noexcept {
  return a > b || (std::isnan(b) && !std::isnan(a));
}

// The items with the greatest scores, in memory for so many; of equals the first that came.
template <class Item>
class TopList {
 public:
  explicit TopList(std::size_t most) : most_(most) {}

  void add(double score, const Item& item) {
    if (items_.size() == most_ && (most_ == 0 || !is_ahead(score, items_.back().first))) return;
    const auto place =
        std::upper_bound(items_.begin(), items_.end(), score,
                         [](double own, const auto& other) { return is_ahead(own, other.first); });
    items_.insert(place, {score, item});
    if (items_.size() > most_) items_.pop_back();
  }

  std::vector<Item> items() const {
    std::vector<Item> result;
    for (const auto& [score, item] : items_) result.push_back(item);
    return result;
  }

  // The score that another item has to be ahead of; NaN while there is room.
  double least() const {
    const bool is_full = !items_.empty() && items_.size() == most_;
    return is_full ? items_.back().first : kNan;
  }

 private:
  std::size_t most_;
  std::vector<std::pair<double, Item>> items_;
};

// What is asked for.
struct Top {
  std::size_t most = 0;
  TopBy by = TopBy::absmax;
};

}  // namespace lnorm
