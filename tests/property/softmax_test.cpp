// Softmax against MPFR: not one result may differ from the correctly rounded one.

#include "lnorm/kernel/softmax.hpp"

#include "lnorm/kernel/softmax_row.hpp"
#include "property/data.hpp"
#include "support/pace.hpp"

namespace {

using namespace property;
using lnorm::DType;
using lnorm::Int128;
using oracle::Number;

// By every kernel, which give the same bits.
std::vector<std::byte> run(const Data& x, DType out) {
  const std::vector<std::byte> y = property::softmax(rows_in(x), out);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    INFO(backend.name << ", " << lnorm::name(out));
    REQUIRE(property::softmax(rows_in(x), out, backend) == y);
  }
  return y;
}

std::vector<double> softmax(const Data& x, DType out) { return read_all(run(x, out), out); }

// Holds every result dtype against the exact one.
void check_softmax(const Data& x) {
  INFO(lnorm::name(x.dtype) << " x " << x.numbers.size());
  for (const DType out : kFloats) {
    INFO(lnorm::name(out));
    check_same(softmax(x, out), oracle::softmax(x.numbers, out));
  }
}

// Holds the float8 of a row, scaled, against the exact ones.
void check_float8(const Data& x, double scale) {
  for (const DType out : kFloat8s) {
    const std::vector<double> expected = oracle::softmax(x.numbers, out, scale);
    for (const bool saturates : {false, true}) {
      std::vector<std::byte> y(x.numbers.size());
      lnorm::softmax(rows_in(x), {.data = y.data(), .dtype = out, .saturates = saturates}, scale);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double actual = read(&y[i], out);
        const double most = largest_finite(out);
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
       [](Random& r, DType d, int, int) { return largest_finite(d) * uniform(r); }},
      {"at both ends",
       [](Random&, DType d, int i, int) { return largest_finite(d) * (i % 3 == 0 ? -1 : 1); }},
      {"subnormal", [](Random& r, DType d, int,
                       int) { return smallest_positive(d) * std::round(500 * uniform(r)); }},
  };
  return result;
}

// Without the clamping of floats, which keeps rows finite.
Data row(DType dtype, const Recipe& recipe, int length, Random& random) {
  std::vector<double> values;
  for (int i = 0; i < length; ++i) values.push_back(recipe.element(random, dtype, i, length));
  return floats(dtype, values);
}

void check_recipes(int length) {
  for (const DType in : kFloats) {
    for (const Recipe& recipe : recipes()) {
      Random random(static_cast<std::uint64_t>(length));
      CAPTURE(recipe.name);
      check_softmax(row(in, recipe, length, random));
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
  static int number = 0;
  for (const DType in :
       {DType::float8_e4m3fn, DType::float8_e5m2, DType::float32, DType::float64}) {
    for (const int length : {1, 2, 33}) {
      for (const Recipe& recipe : recipes()) {
        if (!support::takes(number++)) continue;
        Random random(static_cast<std::uint64_t>(length));
        INFO(recipe.name << ", " << lnorm::name(in) << " x " << length);
        check_float8(floats(in, recipe, length, random), scale);
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
  static int number = 0;
  if (!support::takes(number++, 2)) return;
  Random random(7);
  check_softmax(row(in, length == 3000 ? recipes()[2] : recipes()[0], length, random));
}

TEST_CASE("softmax is exact down to the smallest result and 0 beyond", "[softmax]") {
  // Differences up to where every result dtype has long become 0, in steps that differ from row to
  // row; few elements of a row are large, so that its sum is not a round number.
  const double step = GENERATE(0.75, 0.811, 6.5);
  for (const DType in : kFloats) {
    std::vector<double> values{0.3, 0, -0.1};
    for (int i = 1; i * step < 760; ++i) values.push_back(-i * step);
    CAPTURE(step);
    check_softmax(floats(in, values));
  }
  // The subnormal results one by one, and the first 0.
  for (const auto& [out, least] :
       {std::pair{DType::float16, 17.5}, {DType::float32, 104.5}, {DType::float64, 746.0}}) {
    std::vector<double> values{0};
    for (int eighths = 0; eighths < 96; ++eighths) values.push_back(eighths / 8.0 - least);
    CAPTURE(lnorm::name(out));
    for (const DType in : {DType::float32, DType::float64}) {
      check_softmax(floats(in, values));
      const std::vector<double> y = softmax(floats(in, values), out);
      CHECK(y[1] == 0);
      CHECK(std::count(y.begin(), y.end(), smallest_positive(out)) > 0);
      CHECK(std::count(y.begin(), y.end(), 0) < 20);
    }
  }
}

TEST_CASE("softmax of integers is correctly rounded", "[softmax]") {
  const DType in = GENERATE(from_range(kIntegers));
  for (const int length : {1, 2, 17, 40}) {
    for (const int spread_bits : {1, 3, 6, 9, 64}) {
      CAPTURE(spread_bits);
      Random random(static_cast<std::uint64_t>(length * 1000 + spread_bits));
      check_softmax(integers(in, length, spread_bits, random));
    }
  }
}

TEST_CASE("softmax takes 64-bit integers exactly, at the ends and at powers of two", "[softmax]") {
  constexpr Int128 kOne = 1;
  std::vector<Int128> steps{0, -1, -2, -3, -17, -40, -103, -104, -300, -744, -746, -1100};
  const auto check_both_ways = [&](DType dtype, Int128 top) {
    std::vector<Int128> values;
    for (const Int128 step : steps) values.push_back(top + step);
    CAPTURE(static_cast<double>(top));
    check_softmax(integers(dtype, values));
    std::reverse(values.begin(), values.end());
    check_softmax(integers(dtype, values));
  };
  for (const Int128 top : {(kOne << 53) + 5, (kOne << 62) + 300, (kOne << 63) - 1,
                           -(kOne << 63) + 1101, -(kOne << 62) + 3}) {
    check_both_ways(DType::int64, top);
  }
  // Here doubles lie 2048 apart, so that neighbours may round away from each other.
  for (const Int128 top : {(kOne << 63) + 1025, (kOne << 63) + 1040, (kOne << 63) + 3072 + 400,
                           (kOne << 64) - 1, (kOne << 64) - 1023}) {
    check_both_ways(DType::uint64, top);
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
    constexpr Int128 kOne = 1;
    const auto check_shifts = [&](DType dtype, const std::vector<std::byte>& expected,
                                  std::initializer_list<Int128> shifts) {
      for (const Int128 by : shifts) {
        CAPTURE(lnorm::name(dtype), lnorm::name(out), static_cast<double>(by));
        CHECK(run(shifted(dtype, by), out) == expected);
      }
    };
    const auto expected = run(shifted(DType::int64, 0), out);
    check_shifts(DType::int64, expected,
                 {1, 1000, kOne << 53, (kOne << 60) + 511, (kOne << 63) - 10, -(kOne << 63) + 90,
                  -(kOne << 53) - 1});
    check_shifts(DType::uint64, expected, {100, (kOne << 63) + 1020, (kOne << 64) - 10});
    check_shifts(DType::int32, run(shifted(DType::int32, 0), out),
                 {1, 2'147'483'600, -2'147'483'500});
  }
}

TEST_CASE("an element of -infinity is masked: it becomes 0 and the others do without it",
          "[softmax]") {
  const int length = GENERATE(2, 33, 130);
  const double share = GENERATE(-0.8, 0.5, 1.0);
  for (const DType in : kFloats) {
    CAPTURE(share);
    Random random(static_cast<std::uint64_t>(length));
    check_softmax(row(in, masked(share), length, random));
  }
  // 0, and as far below it as there is: the difference is not finite either.
  check_softmax(floats(DType::float64, std::vector{-kInfinity, 1e308, -kInfinity, -1e308}));
}

TEST_CASE("differences beyond the range of a double are 0", "[softmax]") {
  for (const double most : {1e308, std::numeric_limits<double>::max()}) {
    const Data x = floats(DType::float64, std::vector{most, -most, 0.0, most, -most});
    check_softmax(x);
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
            const std::vector<double> results =
                read_all(property::softmax(rows_in(x, 3), out), out);
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
  static int number = 0;
  const oracle::Fraction expected{1, length, 0};
  for (const DType in : kFloats) {
    for (const DType out : kFloats) {
      if (!support::takes(number++)) continue;
      CAPTURE(lnorm::name(in), lnorm::name(out), length, value);
      const double most = largest_finite(in);
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
      std::vector<double> expected;
      for (const std::size_t from : order) expected.push_back(plain[from]);
      check_same(softmax(floats(in, permuted), out), expected);
    }
  }
}

TEST_CASE("softmax is the same however rows are grouped, whatever the byte order", "[softmax]") {
  constexpr int kGrouped = 7;
  const int length = GENERATE(1, 5, 33, 1030);
  const DType in = GENERATE(DType::int16, DType::int64, DType::uint64, DType::float16,
                            DType::float32, DType::float64);
  Random random(13);
  Data x{in, {}, {}};
  for (int r = 0; r < kGrouped; ++r) {
    append(x, lnorm::is_floating(in)
                  ? row(in, r == 3 ? masked(2) : recipes()[static_cast<std::size_t>(r)], length,
                        random)
                  : integers(in, length, 5 + r, random));
  }
  for (const DType out : kFloats) {
    CAPTURE(lnorm::name(in), lnorm::name(out), length);
    const auto grouped = [&](const std::vector<std::byte>& bytes, std::endian order,
                             std::int64_t rows_a_call) {
      std::vector<std::byte> y(x.numbers.size() * lnorm::item_size(out) + 1);  // at an odd address
      in_calls({bytes.data(), in, order, kGrouped, length}, rows_a_call,
               [&](const lnorm::RowsIn& rows, std::int64_t first) {
                 lnorm::softmax(rows, lnorm::row_of({y.data() + 1, out}, length, first));
               });
      return y;
    };
    const auto all = grouped(x.bytes, std::endian::native, kGrouped);
    CHECK(grouped(x.bytes, std::endian::native, 1) == all);
    CHECK(grouped(x.bytes, std::endian::native, 3) == all);
    CHECK(grouped(swapped(x.bytes, in), kOtherByteOrder, 2) == all);
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
  static int tried = 0;
  for (const Recipe& recipe : {recipes()[0], recipes()[3], recipes()[5], masked(0.5)}) {
    const Data x = row(in, recipe, 9, random);
    const lnorm::RowsIn row_in = rows_in(x);
    double max = -kInfinity;
    for (const Number& number : x.numbers) max = std::max(max, number.value);
    for (const DType out : kFloats) {
      if (!support::takes(tried++, 3)) continue;
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

TEST_CASE("a softmax that lies halfway goes to even", "[softmax][long]") {
  // 2^17 equal elements are 2^-17 each, halfway between 0 and the smallest float8_e5m2.
  const std::vector<lnorm::Float16> x(std::size_t{1} << 17, lnorm::rounded_to<lnorm::Float16>(1));
  std::vector<std::byte> y(x.size(), std::byte{1});
  lnorm::softmax(
      {std::as_bytes(std::span(x)).data(), DType::float16, std::endian::native, 1, std::ssize(x)},
      {y.data(), DType::float8_e5m2});
  CHECK(std::all_of(y.begin(), y.end(), [](std::byte element) { return element == std::byte{}; }));
}
