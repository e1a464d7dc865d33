#include "lnorm/report/numbers.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "support/catch.hpp"

using lnorm::significant_text;

TEST_CASE("numbers keep their significant digits however small", "[report]") {
  CHECK(significant_text(1.5e-8, 3) == "1.5e-08");
  CHECK(significant_text(1.4901161e-8, 3) == "1.49e-08");
  CHECK(significant_text(-1e-300, 3) == "-1e-300");
  CHECK(significant_text(0.000123456, 3) == "0.000123");
  CHECK(significant_text(0.0000999996, 3) == "0.000100");
  CHECK(significant_text(0.5, 3) == "0.500");
  CHECK(significant_text(0.99996, 3) == "1.00");
  CHECK(significant_text(-9.999, 3) == "-10.0");
  CHECK(significant_text(1234.5678, 3) == "1235");
  CHECK(significant_text(999999.4, 3) == "999999");
  CHECK(significant_text(1e6, 3) == "1e+06");
  CHECK(significant_text(1234567, 3) == "1.23e+06");
  CHECK(significant_text(1234567, 8) == "1234567.0");
  CHECK(significant_text(0.25, 1) == "0.2");
  CHECK(significant_text(3e20, 1) == "3e+20");
  CHECK(significant_text(0, 3) == "0");
  CHECK(significant_text(-0.0, 3) == "0");
  CHECK(significant_text(std::numeric_limits<double>::quiet_NaN(), 3) == "nan");
  CHECK(significant_text(-std::numeric_limits<double>::infinity(), 3) == "-inf");
}

TEST_CASE("as many digits are right as were asked for, and with 17 all of them", "[report]") {
  std::mt19937_64 random(6);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random),
                                    static_cast<int>(random() % 200) - 100);
    for (const int digits : {1, 2, 3, 7, 12}) {
      const std::string text = significant_text(value, digits);
      CAPTURE(value, digits, text);
      CHECK(std::fabs(std::stod(text) / value - 1) <= 0.5001 * std::pow(10, 1 - digits));
    }
    CHECK(std::stod(significant_text(value, 17)) == value);
  }
}

TEST_CASE("axes are named in words", "[report]") {
  CHECK(lnorm::axes_text({}) == "no axes");
  CHECK(lnorm::axes_text({2}) == "axis 2");
  CHECK(lnorm::axes_text({0, 3}) == "axes 0 and 3");
  CHECK(lnorm::axes_text({0, 1, 4}) == "axes 0, 1 and 4");
}

TEST_CASE("sizes have three digits and a unit", "[report]") {
  using lnorm::bytes_text;
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.00 KiB");
  CHECK(bytes_text(1536) == "1.50 KiB");
  CHECK(bytes_text(1023 * 1024) == "1023 KiB");
  CHECK(bytes_text((1 << 20) - 1) == "1.00 MiB");
  CHECK(bytes_text(std::int64_t{5} << 30) == "5.00 GiB");
  CHECK(bytes_text(std::numeric_limits<std::int64_t>::max()) == "8.00 EiB");
}
