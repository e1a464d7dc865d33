#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "lnorm/measure/ulp.hpp"

namespace lnorm {

// How many distances are 0, at most 1/2 ulp, 1, 2, 4 and so on up to 2^64, and beyond.
class UlpCounts {
 public:
  static constexpr std::size_t kClasses = 68;

  // Which class a distance belongs to: it is greater than the bound of the class before it. Without a branch,
  // which distances would mislead.
  static std::size_t class_of_steps(std::uint64_t steps) noexcept {
    // Of steps - 1; the least bit is set for the sake of 0, which has none.
    const auto width = static_cast<std::size_t>(std::bit_width((steps - 1) | 1)) -
                       static_cast<std::size_t>(steps == 1);
    return (2 + width + static_cast<std::size_t>(steps == kNoUlpDistance)) *
           static_cast<std::size_t>(steps != 0);
  }
  static std::size_t class_of_real(double distance) noexcept {
    // The exponent of the least power of two that is not less.
    const std::uint64_t up = std::bit_cast<std::uint64_t>(distance) + 0xf'ffff'ffff'ffff;
    const int exponent = static_cast<int>(up >> 52) - 1023;
    return static_cast<std::size_t>(std::clamp(2 + exponent, 1, 67) *
                                    static_cast<int>(distance != 0));
  }

  // Infinity for the last class.
  static double bound(std::size_t number) noexcept;

  void add(std::size_t number, std::int64_t count = 1) noexcept { counts_[number] += count; }
  void append(const UlpCounts& next) noexcept;

  std::int64_t count(std::size_t number) const noexcept { return counts_[number]; }

  // How many classes there are up to the last one that is not empty.
  std::size_t size() const noexcept;

  bool operator==(const UlpCounts&) const = default;

 private:
  std::array<std::int64_t, kClasses> counts_{};
};

}  // namespace lnorm
