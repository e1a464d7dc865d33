#include "lnorm/measure/ulp_counts.hpp"

#include <cmath>
#include <limits>

namespace lnorm {

double UlpCounts::bound(std::size_t number) noexcept {
  if (number == 0) return 0;
  if (number == kClasses - 1) return std::numeric_limits<double>::infinity();
  return std::ldexp(1.0, static_cast<int>(number) - 2);
}

void UlpCounts::append(const UlpCounts& next) noexcept {
  for (std::size_t i = 0; i < kClasses; ++i) counts_[i] += next.counts_[i];
}

std::size_t UlpCounts::size() const noexcept {
  std::size_t size = kClasses;
  while (size > 0 && counts_[size - 1] == 0) --size;
  return size;
}

}  // namespace lnorm
