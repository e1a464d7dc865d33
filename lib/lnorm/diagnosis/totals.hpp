#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace lnorm {

// Lanes let the compiler use vectors; the order of operations is the same on every machine.
inline constexpr std::size_t kTotalLanes = 8;

// terms(i) is kSums numbers. Returns the sum of each of them over i from 0 to n - 1.
template <std::size_t kSums, class Terms>
std::array<double, kSums> totals(std::size_t n, Terms terms) {
  // What the lanes below come to where each has one term at most.
  if (n <= kTotalLanes) {
    std::array<double, kSums> result = {};
    for (std::size_t i = 0; i < n; ++i) {
      const std::array<double, kSums> of = terms(i);
      for (std::size_t s = 0; s < kSums; ++s) result[s] += of[s];
    }
    return result;
  }
  double lanes[kSums][kTotalLanes] = {};
  const auto add = [&](std::size_t i, std::size_t k) {
    const std::array<double, kSums> of = terms(i);
    for (std::size_t s = 0; s < kSums; ++s) lanes[s][k] += of[s];
  };
  std::size_t i = 0;
  for (; i + kTotalLanes <= n; i += kTotalLanes) {
    for (std::size_t k = 0; k < kTotalLanes; ++k) add(i + k, k);
  }
  for (; i < n; ++i) add(i, i % kTotalLanes);
  std::array<double, kSums> result = {};
  for (std::size_t s = 0; s < kSums; ++s) {
    for (const double lane : lanes[s]) result[s] += lane;
  }
  return result;
}

// The greatest of(i) for i from 0 to n - 1, or 0. NaN counts as less.
template <class Of>
double greatest_of(std::size_t n, Of of) {
  if (n <= kTotalLanes) {
    double greatest = 0;
    for (std::size_t i = 0; i < n; ++i) greatest = std::max(greatest, of(i));
    return greatest;
  }
  double lanes[kTotalLanes] = {};
  const auto take = [&](std::size_t i, std::size_t k) {
    const double one = of(i);
    lanes[k] = one > lanes[k] ? one : lanes[k];
  };
  std::size_t i = 0;
  for (; i + kTotalLanes <= n; i += kTotalLanes) {
    for (std::size_t k = 0; k < kTotalLanes; ++k) take(i + k, k);
  }
  for (; i < n; ++i) take(i, 0);
  return *std::max_element(lanes, lanes + kTotalLanes);
}

}  // namespace lnorm
