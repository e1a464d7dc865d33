#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace lnorm {

// The sums of what terms(i) has, kSums numbers, for i from 0 to n - 1. Lanes let the compiler use vectors; the order is the same on
// every machine.
template <std::size_t kSums, class Terms>
std::array<double, kSums> totals(std::size_t n, Terms terms) {
  constexpr std::size_t kLanes = 8;
  double lanes[kSums][kLanes] = {};
  const auto add = [&](std::size_t i, std::size_t k) {
    const std::array<double, kSums> of = terms(i);
    for (std::size_t s = 0; s < kSums; ++s) lanes[s][k] += of[s];
  };
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) add(i + k, k);
  }
  for (; i < n; ++i) add(i, i % kLanes);
  std::array<double, kSums> result = {};
  for (std::size_t s = 0; s < kSums; ++s) {
    for (const double lane : lanes[s]) result[s] += lane;
  }
  return result;
}

// The greatest of(i), or 0; NaN counts as less.
template <class Of>
double greatest_of(std::size_t n, Of of) {
  constexpr std::size_t kLanes = 8;
  double lanes[kLanes] = {};
  const auto take = [&](std::size_t i, std::size_t k) {
    const double one = of(i);
    lanes[k] = one > lanes[k] ? one : lanes[k];
  };
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) take(i + k, k);
  }
  for (; i < n; ++i) take(i, 0);
  return *std::max_element(lanes, lanes + kLanes);
}

}  // namespace lnorm
