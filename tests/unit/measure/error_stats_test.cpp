#include "lnorm/measure/error_stats.hpp"

#include <array>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>
#include <memory>

#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/pace.hpp"

namespace {

using namespace support;
using Fraction = boost::multiprecision::cpp_rational;
using Real = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<400>>;
using lnorm::DType;
using lnorm::ErrorStats;

struct Pairs {
  std::vector<double> actual;
  std::vector<double> expected;
};

ErrorStats stats_of(const Pairs& pairs, DType dtype = DType::float64) {
  const auto a = std::make_unique<lnorm::Chunk>();
  const auto e = std::make_unique<lnorm::Chunk>();
  ErrorStats stats;
  for (std::size_t start = 0; start < pairs.actual.size(); start += lnorm::kChunk) {
    const auto count = std::min<std::size_t>(lnorm::kChunk, pairs.actual.size() - start);
    std::copy_n(pairs.actual.data() + start, count, a->high);
    std::copy_n(pairs.expected.data() + start, count, e->high);
    stats.add(*a, *e, static_cast<std::int64_t>(count), dtype, dtype);
  }
  return stats;
}

// The sums in fractions, the rest in 400 bits and more.
void check_exact(const Pairs& pairs) {
  Fraction error = 0;
  Fraction absolute = 0;
  Fraction toward = 0;
  Fraction squared = 0;
  Fraction size = 0;
  Fraction signal = 0;
  Fraction product = 0;
  for (std::size_t i = 0; i < pairs.actual.size(); ++i) {
    const Fraction a(pairs.actual[i]);
    const Fraction e(pairs.expected[i]);
    const Fraction d = a - e;
    error += d;
    absolute += boost::multiprecision::abs(d);
    if (a * e < 0) {
      toward += boost::multiprecision::abs(e);
    } else if (boost::multiprecision::abs(a) < boost::multiprecision::abs(e)) {
      toward += boost::multiprecision::abs(d);
    }
    squared += d * d;
    size += a * a;
    signal += e * e;
    product += a * e;
  }
  const Fraction count = pairs.actual.size();
  const ErrorStats stats = stats_of(pairs);
  const auto check = [](std::optional<double> found, const Real& right, double margin = 0) {
    REQUIRE(found);
    const Real greatness = boost::multiprecision::abs(right);
    if (greatness < std::numeric_limits<double>::min()) {
      CHECK(std::fabs(*found) < 2.3e-308);
      return;
    }
    if (greatness > std::numeric_limits<double>::max()) {
      CHECK(std::isinf(*found));
      return;
    }
    const Real off = boost::multiprecision::abs(Real(*found) - right);
    CAPTURE(*found, static_cast<double>(right));
    CHECK(off <= 1e-13 * greatness + margin);
  };
  check(stats.mean(), Real(Fraction(error / count)));
  check(stats.mean_absolute(), Real(Fraction(absolute / count)));
  const double margin = 0x1p-1000 * stats.mean_absolute().value_or(0);
  check(stats.mean_toward_zero(), Real(Fraction(toward / count)), margin);
  check(stats.mean_away_from_zero(), Real(Fraction((absolute - toward) / count)), margin);
  if (toward == 0) CHECK(stats.mean_toward_zero() == 0.0);
  if (toward == absolute) CHECK(stats.mean_away_from_zero() == 0.0);
  check(stats.root_mean_square(), sqrt(Real(Fraction(squared / count))));
  check(stats.cosine(), Real(product) / sqrt(Real(size) * Real(signal)));
  check(stats.sqnr(), 10 * log10(Real(Fraction(signal / squared))), 1e-13);
}

double figure(const std::optional<double>& value) { return value.value_or(kNan); }

std::array<std::uint64_t, 7> bits_of(const ErrorStats& stats) {
  const auto bits = [](const std::optional<double>& value) {
    return std::bit_cast<std::uint64_t>(figure(value));
  };
  return {bits(stats.mean()),
          bits(stats.mean_absolute()),
          bits(stats.mean_toward_zero()),
          bits(stats.mean_away_from_zero()),
          bits(stats.root_mean_square()),
          bits(stats.cosine()),
          bits(stats.sqnr())};
}

}  // namespace

TEST_CASE("figures of errors are right to 1e-13, whatever the size of the numbers is",
          "[measure]") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  int number = 0;
  for (const int actual_exponent : {0, 1020, -1030, 600, -600}) {
    for (const int expected_exponent : {0, 1020, -1030, -600}) {
      for (const int error_exponent : {-1, -25, -45}) {
        CAPTURE(actual_exponent, expected_exponent, error_exponent);
        if (!support::takes(number++, 3)) continue;
        Pairs pairs;
        for (int i = 0; i < 150; ++i) {
          const double x = std::ldexp(std::tanh(normal(random)), expected_exponent);
          const double off = std::ldexp(normal(random), error_exponent);
          pairs.expected.push_back(x);
          pairs.actual.push_back(std::ldexp(x * (1 + off), actual_exponent - expected_exponent));
        }
        check_exact(pairs);
      }
    }
  }
}

TEST_CASE("figures of errors are right where numbers of all sizes meet and cancel", "[measure]") {
  check_exact({{1e16, 1, -1e16, 1e-5}, {0, 0, 0, 3e-300}});
  check_exact({{1e200, 1e-200, 2}, {1e200, 3e-200, 2}});
  check_exact({{1.7e308, -1.7e308, 1}, {-1.7e308, 1.6e308, 2}});
  check_exact({{5e-324, 0, 5e-324}, {0, 5e-324, 5e-324}});
  check_exact({{1, 1e-20, 1e-8}, {-1e-20, 1, 1e-16}});  // the products cancel to a cosine of 1e-24
  check_exact({{1, -1e-20, 1, -3, 2}, {-2, 1, -1e-20, 3, -1e300}});  // across zero
  check_exact({{-1.5e308, 1e-300, 0, 1e308}, {1.2e308, -1e-300, 1e-310, 0}});
  // Numbers that are nothing beside the greatest.
  check_exact({{1e300, 5e-301, 2e-300, -2e-300}, {1e300, 1e-300, 1e-300, 1e-300}});
  // Blocks of one size after those of another.
  Pairs pairs;
  for (int i = 0; i < 5000; ++i) {
    const int exponent = i / 1024 % 2 == 0 ? -700 : i / 1024 == 1 ? 0 : 800;
    pairs.expected.push_back(std::ldexp(1 + i % 7, exponent));
    pairs.actual.push_back(std::ldexp(1 + i % 5, exponent));
  }
  check_exact(pairs);
}

TEST_CASE("truncation shows: all of the error is toward zero", "[measure]") {
  std::mt19937_64 random(13);
  std::normal_distribution<double> normal;
  Pairs truncated;
  Pairs nearest;
  for (int i = 0; i < 5000; ++i) {
    const double x = normal(random);
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    truncated.expected.push_back(static_cast<float>(x));
    truncated.actual.push_back(std::bit_cast<float>(bits & 0xffff0000));  // bfloat16, by a mask
    nearest.expected.push_back(x);
    nearest.actual.push_back(static_cast<float>(x));
  }
  const ErrorStats one_way = stats_of(truncated);
  CHECK(figure(one_way.mean_away_from_zero()) == 0);
  CHECK(figure(one_way.mean_toward_zero()) == figure(one_way.mean_absolute()));
  CHECK(std::fabs(figure(one_way.mean())) < 0.1 * figure(one_way.mean_absolute()));
  const ErrorStats both_ways = stats_of(nearest);
  CHECK(figure(both_ways.mean_toward_zero()) ==
        Approx(figure(both_ways.mean_away_from_zero())).epsilon(0.1));
}

TEST_CASE("pairs that are not finite are left out of the figures of errors", "[measure]") {
  const ErrorStats with =
      stats_of({{kNan, 3, 1, kInfinity, 6, kInfinity}, {1, 3, kNan, 2, 4, kInfinity}});
  const ErrorStats without = stats_of({{3, 6}, {3, 4}});
  CHECK(with.pairs() == 2);
  CHECK(with.equal_numbers() == 1);
  CHECK(bits_of(with) == bits_of(without));
  const ErrorStats none = stats_of({{kNan}, {kNan}});
  CHECK(none.pairs() == 0);
  CHECK(!none.mean());
  CHECK(!none.root_mean_square());
  CHECK(!none.cosine());
  CHECK(!none.sqnr());
}

TEST_CASE("equal tensors have an infinite SQNR, and zeros no direction", "[measure]") {
  const ErrorStats equal = stats_of({{1.1, -0.0, 3}, {1.1, 0.0, 3}});
  CHECK(figure(equal.sqnr()) == kInfinity);
  CHECK(figure(equal.cosine()) == 1);
  CHECK(figure(equal.root_mean_square()) == 0);
  CHECK(equal.equal_numbers() == 3);
  CHECK(equal.equal_bits() == 2);
  const ErrorStats zeros = stats_of({{0, 0}, {0, 0}});
  CHECK(figure(zeros.sqnr()) == kInfinity);
  CHECK(!zeros.cosine());
  const ErrorStats signal_missing = stats_of({{1, 0}, {0, 0}});
  CHECK(figure(signal_missing.sqnr()) == -kInfinity);
  CHECK(!signal_missing.cosine());
}

TEST_CASE("elements that are the same as they lie have the figures of elements that are decoded",
          "[measure]") {
  const int exponent = GENERATE(0, 120, -140, 900, -900);
  CAPTURE(exponent);
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::vector<double> doubles(1000);
  std::vector<float> floats(1000);
  for (std::size_t i = 0; i < doubles.size(); ++i) {
    doubles[i] = i % 50 == 3 && exponent == 0 ? kNan : std::ldexp(normal(random), exponent);
    floats[i] = std::fabs(doubles[i]) > 1e38 ? 0 : static_cast<float>(doubles[i]);
  }
  const auto check = [](const auto& elements, DType dtype) {
    const lnorm::RawElements raw{reinterpret_cast<const std::byte*>(elements.data()),
                                 std::ssize(elements), dtype, std::endian::native};
    const Pairs other{{2.5, 1}, {1, 3}};
    ErrorStats same = stats_of(other, dtype);
    same.add_same(raw);
    const Pairs pairs{{elements.begin(), elements.end()}, {elements.begin(), elements.end()}};
    ErrorStats decoded = stats_of(other, dtype);
    decoded.append(stats_of(pairs, dtype));
    CHECK(same.pairs() == decoded.pairs());
    CHECK(same.equal_bits() == decoded.equal_bits());
    CHECK(bits_of(same) == bits_of(decoded));
  };
  check(doubles, DType::float64);
  check(floats, DType::float32);
}

TEST_CASE("64-bit integers that doubles cannot tell apart have errors", "[measure]") {
  const auto a = std::make_unique<lnorm::Chunk>();
  const auto e = std::make_unique<lnorm::Chunk>();
  a->high[0] = e->high[0] = 0x1p63;
  a->low[0] = -1;
  e->low[0] = -4;
  a->high[1] = e->high[1] = 7;
  ErrorStats stats;
  stats.add(*a, *e, 2, DType::int64, DType::int64);
  CHECK(figure(stats.mean()) == 1.5);
  CHECK(figure(stats.root_mean_square()) == std::sqrt(4.5));
  CHECK(stats.equal_numbers() == 1);
}
