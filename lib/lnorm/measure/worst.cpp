#include "lnorm/measure/worst.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "lnorm/core/non_finite.hpp"

namespace lnorm {

namespace {

constexpr std::uint64_t kNotFinite = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMaxUlps = kNotFinite - 2;  // in rank

}  // namespace

std::string_view name(WorstBy by) {
  constexpr std::string_view kNames[] = {"ulp", "abs", "rel", "row-ulp"};
  return kNames[static_cast<std::size_t>(by)];
}

WorstElements::WorstElements(std::size_t most, WorstBy by, RowOf row_of)
    : most_(most), by_(by), row_of_(std::move(row_of)) {}

// In the order of what it is measured by: doubles that are not negative have the order of their bits. What
// differs by less than an ulp still differs.
std::uint64_t WorstElements::badness(const WorstElement& element) const noexcept {
  if (!element.distances) return kNotFinite;
  const Distances& distances = *element.distances;
  if (by_ == WorstBy::ulp) {
    return distances.absolute == 0 ? 0 : std::min(distances.ulps.rank, kMaxUlps) + 1;
  }
  return std::bit_cast<std::uint64_t>(by_ == WorstBy::abs   ? distances.absolute
                                      : by_ == WorstBy::rel ? distances.relative
                                                            : distances.row_ulps);
}

bool WorstElements::is_worse(const WorstElement& a, const WorstElement& b) const noexcept {
  const std::uint64_t left = badness(a);
  const std::uint64_t right = badness(b);
  return left != right ? left > right : a.pair.position < b.pair.position;
}

std::uint64_t WorstElements::floor() const noexcept {
  return most_ > 0 && elements_.size() == most_ ? badness(elements_.back()) : 0;
}

WorstElements::Limits WorstElements::limits() const noexcept {
  constexpr double kNone = kInfinity;
  Limits result{kNotFinite, kNone, kNone, kNone};
  const std::uint64_t limit = std::max(floor_, floor());
  if (most_ == 0 || limit == kNotFinite) return result;
  if (by_ == WorstBy::ulp && limit > 0) result.ulp_rank = limit - 1;
  if (by_ == WorstBy::ulp && limit == 0) result.absolute = 0;
  if (by_ == WorstBy::abs) result.absolute = std::bit_cast<double>(limit);
  if (by_ == WorstBy::rel) result.relative = std::bit_cast<double>(limit);
  if (by_ == WorstBy::row_ulp) result.row_ulps = std::bit_cast<double>(limit);
  return result;
}

void WorstElements::add(const WorstElement& element) {
  if (most_ == 0 || badness(element) <= floor_) return;
  if (elements_.size() == most_ && !is_worse(element, elements_.back())) return;
  if (row_of_) {
    const std::int64_t row = row_of_(element.pair.position);
    const auto same = std::find_if(
        elements_.begin(), elements_.end(),
        [&](const WorstElement& other) { return row_of_(other.pair.position) == row; });
    if (same != elements_.end()) {
      if (!is_worse(element, *same)) return;
      elements_.erase(same);
    }
  }
  if (elements_.size() == most_) elements_.pop_back();
  const auto place = std::upper_bound(elements_.begin(), elements_.end(), element,
                                      [&](const auto& a, const auto& b) { return is_worse(a, b); });
  elements_.insert(place, element);
}

void WorstElements::merge(const WorstElements& other) {
  for (const WorstElement& element : other.elements_) add(element);
}

void WorstElements::clear(std::uint64_t floor) {
  floor_ = floor;
  elements_.clear();
}

}  // namespace lnorm
