#include "lnorm/kernel/exp.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "support/catch.hpp"
#include "support/pace.hpp"

namespace mp = boost::multiprecision;
using lnorm::DoubleDouble;
using lnorm::Exp;
using Exact = mp::number<mp::cpp_bin_float<300, mp::digit_base_2>, mp::et_off>;

namespace {

double relative_error(const Exact& actual, const Exact& expected) {
  return static_cast<double>(Exact(mp::abs(actual / expected - 1)));
}

// About the places where the reduction goes over to its next multiple of ln2 or ln2/64, and elsewhere.
template <class Check>
void for_many(double least, Check check) {
  std::mt19937_64 random(4);
  const auto uniform = [&](double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random);
  };
  for (const double d : {0.0, -0.0, -5e-324, -1e-300, -0x1p-54, -0x1p-53, -1e-9}) check(d);
  for (int i = 0; i < support::share(1200); ++i) {
    check(uniform(least, 0));
    check(uniform(-3, 0));
    check(-std::exp2(uniform(-60, 1)));
    const double step = 0x1.62e42fefa39efp-1 / (i % 2 == 0 ? 1 : 64);  // ln2, ln2/64
    const double turn = -(std::floor(uniform(0, -least / step - 1)) + 0.5) * step;
    check(turn);
    check(std::nextafter(turn, 0));
    check(std::nextafter(turn, -1e9));
  }
}

Exact value(const Exp::Power& power) {
  return mp::ldexp(Exact(power.m.high) + Exact(power.m.low), static_cast<int>(power.exponent));
}

}  // namespace

TEST_CASE("exp of a double is within its bound", "[kernel]") {
  CHECK(Exp::in_double(0) == 1);
  for_many(-707, [&](double d) {
    const double error = relative_error(Exp::in_double(d), mp::exp(Exact(d)));
    if (!(error <= Exp::kDoubleError)) FAIL("exp(" << d << ") is off by 2^" << std::log2(error));
  });
}

TEST_CASE("exp of a double below -707 is that of -707", "[kernel]") {
  const double least = Exp::in_double(-707);
  CHECK(relative_error(least, mp::exp(Exact(-707))) <= Exp::kDoubleError);
  for (const double d : {-707.001, -707.5, -708.0, -709.0, -745.2, -800.0, -1e300}) {
    INFO("exp(" << d << ") gives " << Exp::in_double(d));
    CHECK((Exp::in_double(d) == least));
  }
  CHECK((Exp::in_double(-std::numeric_limits<double>::infinity()) == least));
}

TEST_CASE("exp of a double-double is within its bound", "[kernel]") {
  const Exp exp;
  const Exp::Power one = exp.in_double_double({0, 0});
  CHECK(value(one) == 1);
  std::mt19937_64 random(5);
  for_many(-1200, [&](double high) {
    const double low = high * 0x1p-53 * std::uniform_real_distribution<double>(-0.99, 0.99)(random);
    for (const DoubleDouble d : {DoubleDouble{high}, lnorm::fast_two_sum(high, low)}) {
      const Exp::Power actual = exp.in_double_double(d);
      const double error = relative_error(value(actual), mp::exp(Exact(d.high) + Exact(d.low)));
      if (!(error <= Exp::kDoubleDoubleError))
        FAIL("exp(" << d.high << ") is off by 2^" << std::log2(error));
      if (actual.m.high < 0.99 || actual.m.high > 2.01)
        FAIL(actual.m.high << " is not about [1, 2)");
    }
  });
}

TEST_CASE("powers of two are those of ldexp, over all normal exponents", "[kernel]") {
  for (int exponent = -1022; exponent <= 1023; ++exponent) {
    if (Exp::power_of_two(exponent) != std::ldexp(1, exponent)) FAIL(exponent);
  }
}
