#include "lnorm/core/dtype_table.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

#include "support/catch.hpp"

using lnorm::DType;

TEST_CASE("a format's least and greatest numbers and its precision are those of its bits",
          "[core]") {
  const auto check = [](DType dtype, double least, double one, double after_one, double greatest) {
    CAPTURE(lnorm::name(dtype));
    const lnorm::FloatFormat format = lnorm::float_format(dtype);
    CHECK(std::ldexp(1.0, format.least_exponent) == least);
    CHECK(std::ldexp(1.0, 1 - format.precision) == after_one - one);
    CHECK(format.greatest == greatest);
  };
  const auto half = [](std::uint16_t bits) { return lnorm::to_double(lnorm::Float16{bits}); };
  const auto brain = [](std::uint16_t bits) { return lnorm::to_double(lnorm::BFloat16{bits}); };
  const auto single = [](std::uint32_t bits) { return double{std::bit_cast<float>(bits)}; };
  const auto real = [](std::uint64_t bits) { return std::bit_cast<double>(bits); };
  check(DType::float8_e4m3fn, 0x1p-9, 1, 1.125, 448);
  check(DType::float8_e5m2, 0x1p-16, 1, 1.25, 57344);
  check(DType::float16, half(1), half(0x3c00), half(0x3c01), half(0x7bff));
  check(DType::bfloat16, brain(1), brain(0x3f80), brain(0x3f81), brain(0x7f7f));
  check(DType::float32, single(1), single(0x3f80'0000), single(0x3f80'0001), single(0x7f7f'ffff));
  check(DType::float64, real(1), real(0x3ff0'0000'0000'0000), real(0x3ff0'0000'0000'0001),
        real(0x7fef'ffff'ffff'ffff));
}
