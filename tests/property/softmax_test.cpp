// Softmax against MPFR: not one result may differ from the correctly rounded one.

#include "lnorm/kernel/softmax.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lnorm/kernel/exact_softmax.hpp"
#include "property/data.hpp"
#include "support/catch.hpp"
#include "support/oracle.hpp"

namespace {

using lnorm::DType;
using lnorm::Int128;
using oracle::Number;
using property::Data;
using property::floats;
using property::integers;
using property::normal;
using property::Random;
using property::Recipe;
using property::uniform;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::array kFloats{DType::float16, DType::bfloat16, DType::float32, DType::float64};

std::vector<std::byte> run(const Data& x, DType out) {
  const auto length = static_cast<std::int64_t>(x.numbers.size());
  std::vector<std::byte> y(x.numbers.size() * lnorm::item_size(out));
  const lnorm::RowsIn row{x.bytes.data(), x.dtype, std::endian::native, 1, length};
  lnorm::softmax(row, {y.data(), out});
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    std::vector<std::byte> same(y.size());
    lnorm::softmax(row, {same.data(), out}, 1, kernel);
    INFO(kernel.name << ", " << lnorm::name(out));
    REQUIRE(same == y);
  }
  return y;
}

std::vector<double> softmax(const Data& x, DType out) {
  return property::read_all(run(x, out), out);
}

// Holds every result dtype against the exact one.
void check(const Data& x) {
  for (const DType out : kFloats) {
    const std::vector<double> expected = oracle::softmax(x.numbers, out);
    const std::vector<double> y = softmax(x, out);
    for (std::size_t i = 0; i < y.size(); ++i) {
      if (y[i] == expected[i] && !std::signbit(y[i])) continue;
      FAIL(lnorm::name(out) << ": element " << i << " of " << y.size() << " is " << y[i]
                            << ", expected " << expected[i]);
    }
  }
}

// Holds the float8 of a row, scaled, against the exact ones.
void check_float8(const Data& x, double scale) {
  for (const DType out : {DType::float8_e4m3fn, DType::float8_e5m2}) {
    const std::vector<double> expected = oracle::softmax(x.numbers, out, scale);
    for (const bool saturates : {false, true}) {
      std::vector<std::byte> y(x.numbers.size());
      lnorm::softmax(
          {x.bytes.data(), x.dtype, std::endian::native, 1, static_cast<std::int64_t>(y.size())},
          {.data = y.data(), .dtype = out, .saturates = saturates}, scale);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double actual = property::read(&y[i], out);
        const double most = property::largest_finite(out);
        const bool is_right =
            !std::isinf(expected[i])
                ? actual == expected[i] && std::signbit(actual) == std::signbit(expected[i])
            : saturates                 ? actual == std::copysign(most, scale)
            : out == DType::float8_e5m2 ? actual == expected[i]
                                        : std::isnan(actual);
        if (is_right) continue;
        FAIL(lnorm::name(out) << ", scale " << scale << ": element " << i << " is " << actual
                              << ", expected " << expected[i]);
      }
    }
  }
}

// -infinity, but for some elements.
Recipe masked(double share) {
  return {"masked", [share](Random& r, DType, int i, int) {
            return i == 0 || uniform(r) > share ? 5 * normal(r) : -kInfinity;
          }};
}

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> result{
      {"normal", [](Random& r, DType, int, int) { return normal(r); }},
      {"1e-6", [](Random& r, DType, int, int) { return 1e-6 * uniform(r); }},
      {"within 20", [](Random& r, DType, int, int) { return 10 * uniform(r); }},
      {"within 110", [](Random& r, DType, int, int) { return 55 * uniform(r); }},
      {"within 770", [](Random& r, DType, int, int) { return 385 * uniform(r); }},
      {"1e4 + normal", [](Random& r, DType, int, int) { return 1e4 + normal(r); }},
      {"large and small", [](Random& r, DType, int i,
                             int) { return i % 2 == 0 ? 1e3 + normal(r) : 1e-9 * normal(r); }},
      {"one far above", [](Random& r, DType, int i, int) { return i == 0 ? 30.0 : normal(r); }},
      {"near the largest",
       [](Random& r, DType d, int, int) { return property::largest_finite(d) * uniform(r); }},
      {"at both ends", [](Random&, DType d, int i,
                          int) { return property::largest_finite(d) * (i % 3 == 0 ? -1 : 1); }},
      {"subnormal",
       [](Random& r, DType d, int, int) {
         return property::smallest_positive(d) * std::round(500 * uniform(r));
       }},
  };
  return result;
}

// Without the clamping of property::floats, which keeps rows finite.
Data row(DType dtype, const Recipe& recipe, int length, Random& random) {
  std::vector<double> values;
  for (int i = 0; i < length; ++i) values.push_back(recipe.element(random, dtype, i, length));
  return floats(dtype, values);
}

void check_recipes(int length) {
  for (const DType in : kFloats) {
    for (const Recipe& recipe : recipes()) {
      Random random(static_cast<std::uint64_t>(length));
      INFO(recipe.name << ", " << lnorm::name(in) << " x " << length);
      check(row(in, recipe, length, random));
    }
  }
}

}  // namespace

TEST_CASE("softmax of floats is correctly rounded", "[softmax]") {
  const int length = GENERATE(1, 2, 3, 31, 33);
  check_recipes(length);
}

TEST_CASE("softmax of float8 is correctly rounded, scaled or not", "[softmax][float8]") {
  const double scale = GENERATE(1.0, 448.0, -1e5, 1e-3, 0.0, 1e300, 5e-324);
  for (const DType in :
       {DType::float8_e4m3fn, DType::float8_e5m2, DType::float32, DType::float64}) {
    for (const int length : {1, 2, 33}) {
      for (const Recipe& recipe : recipes()) {
        Random random(static_cast<std::uint64_t>(length));
        INFO(recipe.name << ", " << lnorm::name(in) << " x " << length);
        check_float8(property::floats(in, recipe, length, random), scale);
      }
    }
  }
  // Ties: halves, of which the scale makes 29 * 2^4, and 3 * 2^-10.
  check_float8(floats(DType::float32, std::vector<double>{0.5, 0.5}), 928);
  check_float8(floats(DType::float64, std::vector<double>{0.5, 0.5}), -0x3p-9);
  check_float8(floats(DType::float32, std::vector<double>{0, -kInfinity}), -7);
}

TEST_CASE("softmax of more elements is correctly rounded", "[softmax][long]") {
  const int length = GENERATE(64, 130);
  check_recipes(length);
}

TEST_CASE("softmax of long rows is correctly rounded", "[softmax][long]") {
  const DType in = GENERATE(from_range(kFloats));
  const int length = GENERATE(1023, 1024, 1025, 3000);
  Random random(7);
  CAPTURE(lnorm::name(in), length);
  check(row(in, length == 3000 ? recipes()[2] : recipes()[0], length, random));
}

TEST_CASE("softmax is exact down to the smallest result and 0 beyond", "[softmax]") {
  // Differences up to where every result dtype has long become 0, in steps that differ from row to
  // row; few elements of a row are large, so that its sum is not a round number.
  const double step = GENERATE(0.75, 0.811, 6.5);
  for (const DType in : kFloats) {
    std::vector<double> values{0.3, 0, -0.1};
    for (int i = 1; i * step < 760; ++i) values.push_back(-i * step);
    CAPTURE(lnorm::name(in), step);
    check(floats(in, values));
  }
  // The subnormal results one by one, and the first 0.
  for (const auto& [out, least] :
       {std::pair{DType::float16, 17.5}, {DType::float32, 104.5}, {DType::float64, 746.0}}) {
    std::vector<double> values{0};
    for (int eighths = 0; eighths < 96; ++eighths) values.push_back(eighths / 8.0 - least);
    CAPTURE(lnorm::name(out));
    for (const DType in : {DType::float32, DType::float64}) {
      check(floats(in, values));
      const std::vector<double> y = softmax(floats(in, values), out);
      CHECK(y[1] == 0);
      CHECK(std::count(y.begin(), y.end(), property::smallest_positive(out)) > 0);
      CHECK(std::count(y.begin(), y.end(), 0) < 20);
    }
  }
}

TEST_CASE("softmax of integers is correctly rounded", "[softmax]") {
  const DType in = GENERATE(DType::boolean, DType::int8, DType::int16, DType::int32, DType::int64,
                            DType::uint8, DType::uint16, DType::uint32, DType::uint64);
  for (const int length : {1, 2, 17, 40}) {
    for (const int spread_bits : {1, 3, 6, 9, 64}) {
      INFO(lnorm::name(in) << " x " << length << ", " << spread_bits << " bits");
      Random random(static_cast<std::uint64_t>(length * 1000 + spread_bits));
      check(integers(in, length, spread_bits, random));
    }
  }
}

TEST_CASE("softmax takes 64-bit integers exactly, at the ends and at powers of two", "[softmax]") {
  constexpr Int128 kOne = 1;
  std::vector<Int128> steps{0, -1, -2, -3, -17, -40, -103, -104, -300, -744, -746, -1100};
  for (const Int128 top : {(kOne << 53) + 5, (kOne << 62) + 300, (kOne << 63) - 1,
                           -(kOne << 63) + 1101, -(kOne << 62) + 3}) {
    std::vector<Int128> values;
    for (const Int128 step : steps) values.push_back(top + step);
    CAPTURE(static_cast<double>(top));
    check(integers(DType::int64, values));
    std::reverse(values.begin(), values.end());
    check(integers(DType::int64, values));
  }
  // Here doubles lie 2048 apart, so that neighbours may round away from each other.
  for (const Int128 top : {(kOne << 63) + 1025, (kOne << 63) + 1040, (kOne << 63) + 3072 + 400,
                           (kOne << 64) - 1, (kOne << 64) - 1023}) {
    std::vector<Int128> values;
    for (const Int128 step : steps) values.push_back(top + step);
    CAPTURE(static_cast<double>(top));
    check(integers(DType::uint64, values));
    std::reverse(values.begin(), values.end());
    check(integers(DType::uint64, values));
  }
}

TEST_CASE("integers shifted by a constant have the same softmax, bit for bit", "[softmax]") {
  const std::vector<Int128> values{3, -4, 0, 9, 9, -90, -20, 7};
  const auto shifted = [&](DType dtype, Int128 by) {
    std::vector<Int128> result = values;
    for (Int128& value : result) value += by;
    return integers(dtype, result);
  };
  for (const DType out : kFloats) {
    const auto expected = run(shifted(DType::int64, 0), out);
    constexpr Int128 kOne = 1;
    for (const Int128 by : {kOne, Int128{1000}, kOne << 53, (kOne << 60) + 511, (kOne << 63) - 10,
                            -(kOne << 63) + 90, -(kOne << 53) - 1}) {
      CAPTURE(lnorm::name(out), static_cast<double>(by));
      CHECK(run(shifted(DType::int64, by), out) == expected);
    }
    for (const Int128 by : {Int128{100}, (kOne << 63) + 1020, (kOne << 64) - 10}) {
      CAPTURE(lnorm::name(out), static_cast<double>(by));
      CHECK(run(shifted(DType::uint64, by), out) == expected);
    }
    const auto narrow = run(shifted(DType::int32, 0), out);
    for (const Int128 by : {Int128{1}, Int128{2'147'483'600}, Int128{-2'147'483'500}}) {
      CAPTURE(lnorm::name(out), static_cast<double>(by));
      CHECK(run(shifted(DType::int32, by), out) == narrow);
    }
  }
}

TEST_CASE("an element of -infinity is masked: it becomes 0 and the others do without it",
          "[softmax]") {
  const int length = GENERATE(2, 33, 130);
  const double share = GENERATE(-0.8, 0.5, 1.0);
  for (const DType in : kFloats) {
    CAPTURE(lnorm::name(in), length, share);
    Random random(static_cast<std::uint64_t>(length));
    check(row(in, masked(share), length, random));
  }
  // 0, and as far below it as there is: the difference is not finite either.
  check(floats(DType::float64, std::vector{-kInfinity, 1e308, -kInfinity, -1e308}));
}

TEST_CASE("differences beyond the range of a double are 0", "[softmax]") {
  for (const double most : {1e308, std::numeric_limits<double>::max()}) {
    const Data x = floats(DType::float64, std::vector{most, -most, 0.0, most, -most});
    check(x);
    for (const DType out : kFloats) {
      CHECK(softmax(x, out) == std::vector{0.5, 0.0, 0.0, 0.5, 0.0});
    }
  }
}

TEST_CASE("a row with NaN, with infinity or of -infinity alone is NaN, and no other", "[softmax]") {
  const auto length = GENERATE(as<std::size_t>{}, 1, 3, 32, 33, 1025);
  for (const DType in : kFloats) {
    for (const DType out : kFloats) {
      for (const double bad : {kNan, kInfinity}) {
        for (const std::size_t place : {std::size_t{0}, length / 2, length - 1}) {
          for (const double others : {1.0, -kInfinity, 50.0}) {
            CAPTURE(lnorm::name(in), lnorm::name(out), bad, length, place, others);
            std::vector<double> values(3 * length, 2.0);
            std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(length), length, others);
            values[length + place] = bad;
            const Data x = floats(in, values);
            std::vector<std::byte> y(values.size() * lnorm::item_size(out));
            lnorm::softmax(
                {x.bytes.data(), in, std::endian::native, 3, static_cast<std::int64_t>(length)},
                {y.data(), out});
            const std::vector<double> results = property::read_all(y, out);
            for (std::size_t i = 0; i < results.size(); ++i) {
              if (std::isnan(results[i]) != (i / length == 1)) FAIL(i << " is " << results[i]);
            }
          }
        }
      }
      for (const double y : softmax(floats(in, std::vector(length, -kInfinity)), out)) {
        if (!std::isnan(y)) FAIL("of -infinity alone, " << y);
      }
    }
  }
}

TEST_CASE("n equal elements give the rounding of 1/n, whatever they are", "[softmax]") {
  const int length = GENERATE(1, 2, 3, 7, 10, 31, 32, 33, 49, 1000, 1024, 1025, 3000, 70'001);
  const double value = GENERATE(0.0, -3.7, 1e300);
  const oracle::Fraction expected{1, length, 0};
  for (const DType in : kFloats) {
    for (const DType out : kFloats) {
      CAPTURE(lnorm::name(in), lnorm::name(out), length, value);
      const double most = property::largest_finite(in);
      const Data x =
          floats(in, std::vector(static_cast<std::size_t>(length), std::clamp(value, -most, most)));
      const std::vector<double> y = softmax(x, out);
      CHECK(y[0] == oracle::rounded(expected, out));
      CHECK(std::count(y.begin(), y.end(), y[0]) == length);
    }
  }
}

TEST_CASE("a permutation of a row permutes its softmax", "[softmax]") {
  Random random(12);
  for (const DType in : kFloats) {
    std::vector<double> values;
    for (int i = 0; i < 1500; ++i) values.push_back(4 * normal(random));
    std::vector<std::size_t> order(values.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<double> permuted;
    for (const std::size_t from : order) permuted.push_back(values[from]);
    for (const DType out : kFloats) {
      CAPTURE(lnorm::name(in), lnorm::name(out));
      const std::vector<double> plain = softmax(floats(in, values), out);
      const std::vector<double> other = softmax(floats(in, permuted), out);
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (other[i] != plain[order[i]]) {
          FAIL("element " << i << " is " << other[i] << ", " << plain[order[i]] << " before");
        }
      }
    }
  }
}

TEST_CASE("softmax is the same however rows are grouped, whatever the byte order", "[softmax]") {
  constexpr int kRows = 7;
  const int length = GENERATE(1, 5, 33, 1030);
  const DType in = GENERATE(DType::int16, DType::int64, DType::uint64, DType::float16,
                            DType::float32, DType::float64);
  Random random(13);
  Data x{in, {}, {}};
  for (int r = 0; r < kRows; ++r) {
    const Data row_of_x =
        lnorm::is_floating(in)
            ? row(in, r == 3 ? masked(2) : recipes()[static_cast<std::size_t>(r)], length, random)
            : integers(in, length, 5 + r, random);
    x.bytes.insert(x.bytes.end(), row_of_x.bytes.begin(), row_of_x.bytes.end());
  }
  for (const DType out : kFloats) {
    CAPTURE(lnorm::name(in), lnorm::name(out), length);
    const auto grouped = [&](const std::vector<std::byte>& bytes, std::endian order,
                             std::int64_t rows_a_call) {
      const std::size_t in_row = bytes.size() / kRows;
      const std::size_t out_row = static_cast<std::size_t>(length) * lnorm::item_size(out);
      std::vector<std::byte> y(kRows * out_row + 1);  // at an odd address
      for (std::int64_t r = 0; r < kRows; r += rows_a_call) {
        const auto first = static_cast<std::size_t>(r);
        lnorm::softmax(
            {bytes.data() + first * in_row, in, order, std::min(rows_a_call, kRows - r), length},
            {y.data() + 1 + first * out_row, out});
      }
      return y;
    };
    const auto all = grouped(x.bytes, std::endian::native, kRows);
    CHECK(grouped(x.bytes, std::endian::native, 1) == all);
    CHECK(grouped(x.bytes, std::endian::native, 3) == all);
    CHECK(grouped(property::swapped(x.bytes, in), property::kOtherByteOrder, 2) == all);
  }
}

TEST_CASE("softmax of no elements writes nothing", "[softmax]") {
  std::byte untouched{42};
  lnorm::softmax({&untouched, DType::float32, std::endian::native, 3, 0},
                 {&untouched, DType::float32});
  CHECK(untouched == std::byte{42});
}

TEST_CASE("the exact way alone decides every softmax right", "[softmax][long]") {
  const DType in = GENERATE(DType::float16, DType::float32, DType::float64);
  Random random(31);
  for (const Recipe& recipe : {recipes()[0], recipes()[3], recipes()[5], masked(0.5)}) {
    const Data x = row(in, recipe, 9, random);
    const lnorm::RowsIn row_in{x.bytes.data(), in, std::endian::native, 1, 9};
    double max = -kInfinity;
    for (const Number& number : x.numbers) max = std::max(max, number.value);
    for (const DType out : kFloats) {
      CAPTURE(lnorm::name(in), lnorm::name(out), recipe.name);
      const std::vector<double> expected = oracle::softmax(x.numbers, out);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double value = x.numbers[i].value;
        if (value == -kInfinity) continue;
        CHECK(lnorm::exact_softmax([&](const auto& see) { see(row_in); }, {value}, {max}, out) ==
              expected[i]);
      }
    }
  }
}

#ifndef LNORM_SANITIZED  // where it takes minutes
TEST_CASE("a softmax that lies halfway goes to even", "[softmax][long]") {
  // 2^25 equal elements are 2^-25 each, halfway between 0 and the smallest float16.
  const std::vector<lnorm::Float16> x(std::size_t{1} << 25, lnorm::to_float16(1));
  std::vector<lnorm::Float16> y(x.size());
  lnorm::softmax(
      {std::as_bytes(std::span(x)).data(), DType::float16, std::endian::native, 1, std::ssize(x)},
      {std::as_writable_bytes(std::span(y)).data(), DType::float16});
  CHECK(std::all_of(y.begin(), y.end(), [](lnorm::Float16 element) { return element.bits == 0; }));
}
#endif
