#include <cmath>
#include <cstddef>

#include "lnorm/measure/comparison.hpp"
#include "support/catch.hpp"

using lnorm::UlpCounts;

TEST_CASE("a distance is at most the bound of its class, and more than that of the class before",
          "[measure]") {
  for (std::size_t i = 1; i < UlpCounts::kClasses; ++i) {
    const double bound = UlpCounts::bound(i);
    const double before = UlpCounts::bound(i - 1);
    CAPTURE(i, bound, before);
    CHECK(UlpCounts::class_of_real(bound) == i);
    CHECK(UlpCounts::class_of_real(std::nextafter(before, bound)) == i);
    if (bound >= 1 && bound < 0x1p64) {
      const auto steps = static_cast<std::uint64_t>(bound);
      CHECK(UlpCounts::class_of_steps(steps) == i);
      CHECK(UlpCounts::class_of_steps(steps + 1) == i + 1);
    }
  }
  CHECK(UlpCounts::class_of_real(0) == 0);
  CHECK(UlpCounts::class_of_steps(0) == 0);
  CHECK(UlpCounts::class_of_steps(lnorm::kNoUlpDistance - 1) == UlpCounts::kClasses - 2);
  CHECK(UlpCounts::class_of_steps(lnorm::kNoUlpDistance) == UlpCounts::kClasses - 1);
  CHECK(std::isinf(UlpCounts::bound(UlpCounts::kClasses - 1)));
}
