// The steps of lnorm explain: ExactRow's numbers, and moments and softmax of rows in parts, against exact arithmetic and
// against rows that are held. Not one may differ.

#include "lnorm/kernel/exact_row.hpp"

#include "lnorm/kernel/moments.hpp"
#include "lnorm/kernel/softmax.hpp"
#include "lnorm/kernel/softmax_row.hpp"
#include "property/data.hpp"

namespace {

using namespace property;
using lnorm::DType;
using lnorm::EpsOn;
using lnorm::Formula;
using lnorm::RowsIn;
using oracle::Fraction;

const Fraction kOne{1, 1, 0};

Fraction count(std::int64_t n) { return {oracle::Integer(n), 1, 0}; }

double rounded(const Fraction& value) { return oracle::rounded(value, DType::float64); }

// The float64 nearest to what lies between value(0) and value(1), of more and more bits.
template <class Value>
double decided(Value value) {
  return oracle::decided([&](int which, std::int64_t bits) { return rounded(value(which, bits)); });
}

lnorm::ReadRow in_parts(const RowsIn& row, std::int64_t length) {
  return [=](const auto& see) {
    for (std::int64_t first = 0; first < row.row_length; first += length) {
      see(lnorm::part_of(row, first, std::min(length, row.row_length - first)));
    }
  };
}

void check(const Data& x, const Formula& formula) {
  CAPTURE(x.dtype, x.numbers.size(), formula.eps, formula.ddof, formula.rms,
          formula.eps_place().name);
  const RowsIn row = rows_in(x);
  const lnorm::SummedRow sums(in_parts(row, 7), row.row_length);
  REQUIRE(sums.is_finite());
  const lnorm::ExactRow exact = sums.by(formula);

  const Fraction n = count(row.row_length);
  const oracle::Integers numbers = oracle::integers(x.numbers);
  const Fraction sum{numbers.sum, 1, numbers.exponent};
  const Fraction mean = formula.rms ? Fraction{} : sum / n;
  Fraction squares;
  for (std::int64_t i = 0; i < row.row_length; ++i) {
    const Fraction deviation = oracle::fraction(x.numbers[static_cast<std::size_t>(i)]) - mean;
    squares = squares + deviation * deviation;
    CHECK(exact.deviation(lnorm::element_of(row, i)) == rounded(deviation));
    CHECK(exact.squared_deviation(lnorm::element_of(row, i)) == rounded(deviation * deviation));
  }
  CHECK(exact.squares() == rounded(squares));
  const Fraction variance = squares / count(row.row_length - formula.ddof);
  CHECK(exact.variance() == rounded(variance));
  const Fraction eps = oracle::fraction({formula.eps});
  const bool on_std = formula.eps_on == EpsOn::std;
  const bool is_eps = formula.eps_on == EpsOn::max && (variance - eps * eps).numerator < 0;
  const oracle::Root root(formula.eps_on == EpsOn::variance ? variance + eps
                          : is_eps                          ? eps * eps
                                                            : variance);
  const auto divisor = [&](int which, std::int64_t bits) {
    return on_std ? root.bound(which, bits) + eps : root.bound(which, bits);
  };
  CHECK(exact.divisor() == decided(divisor));
  if (!exact.is_defined()) return;
  CHECK(exact.mean_square() == decided([&](int which, std::int64_t bits) {
          const Fraction s = divisor(1 - which, bits);
          return squares / n / (s * s);
        }));
}

}  // namespace

TEST_CASE("every step of a row is the exact number, rounded once", "[exact_row]") {
  Random random(11);
  for (const Recipe& recipe : float_recipes()) {
    CAPTURE(recipe.name);
    for (const DType dtype : {DType::float16, DType::float32, DType::float64}) {
      for (const int length : {1, 2, 5, 20}) {
        const Data x = floats(dtype, recipe, length, random);
        const bool is_finite =
            std::all_of(x.numbers.begin(), x.numbers.end(),
                        [](const oracle::Number& number) { return std::isfinite(number.value); });
        if (!is_finite) continue;
        for (const bool rms : {false, true}) {
          for (const EpsOn eps_on : {EpsOn::variance, EpsOn::std, EpsOn::max}) {
            for (const double eps : {0.0, 1e-5, 3e-300}) {
              const std::int64_t ddof = length > 1 && eps == 1e-5 ? 1 : 0;
              check(x, {eps, eps_on, ddof, rms});
            }
          }
        }
      }
    }
  }
  check(integers(DType::int64, 9, 63, random), {});
  check(integers(DType::uint64, 5, 64, random), {.eps_on = EpsOn::std});
}

TEST_CASE("squares and roots that are exact come out exactly", "[exact_row]") {
  const std::vector<double> values{1, 3};
  const Data x = floats(DType::float64, values);
  const lnorm::SummedRow sums(in_parts(rows_in(x), 1), 2);
  CHECK(sums.by({.eps = 0}).divisor() == 1);
  CHECK(sums.by({.eps = 0}).mean_square() == 1);
  CHECK(sums.by({.eps = 3}).divisor() == 2);
  CHECK(sums.by({.eps = 3}).mean_square() == 0.25);
  CHECK(sums.by({.eps = 1, .eps_on = EpsOn::std}).divisor() == 2);
  CHECK(sums.by({.eps = 1, .eps_on = EpsOn::std}).mean_square() == 0.25);
}

TEST_CASE("a row in parts has the moments and the softmax of the row", "[exact_row]") {
  Random random(12);
  for (const Recipe& recipe : float_recipes()) {
    for (const DType dtype :
         {DType::float8_e5m2, DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      for (const int length : {1, 17, 3000}) {
        CAPTURE(recipe.name, dtype, length);
        const Data x = floats(dtype, recipe, length, random);
        const RowsIn row = rows_in(x);
        const std::int64_t ddof = length > 1 ? 1 : 0;
        for (const lnorm::Backend& backend :
             {lnorm::backends().front(), lnorm::backends().back()}) {
          lnorm::Moments whole;
          lnorm::measure_moments(row, ddof, &whole, backend);
          const lnorm::Moments parts =
              lnorm::measure_moments(in_parts(row, 1024), dtype, length, ddof, backend);
          CHECK(parts.non_finite == whole.non_finite);
          for (double lnorm::Moments::*const value :
               {&lnorm::Moments::sum, &lnorm::Moments::mean, &lnorm::Moments::variance,
                &lnorm::Moments::min, &lnorm::Moments::max}) {
            const bool are_nan = std::isnan(parts.*value) && std::isnan(whole.*value);
            CHECK((are_nan || parts.*value == whole.*value));
          }
        }
        const lnorm::Number max = lnorm::largest_element(in_parts(row, 7));
        if (!std::isfinite(max.high)) continue;
        const lnorm::SoftmaxRow softmax(in_parts(row, 7), length, max);
        for (const DType out :
             {DType::float8_e4m3fn, DType::bfloat16, DType::float32, DType::float64}) {
          const std::vector<std::byte> y = property::softmax(row, out);
          const RowsIn expected{y.data(), out, std::endian::native, 1, length};
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < length; ++i) {
            const double result = softmax.result(lnorm::element_of(row, i), out);
            wrong += result == lnorm::element_of(expected, i).high ? 0 : 1;
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}
