// measure_moments against exact arithmetic: not one number may differ from the correctly rounded one.

#include "lnorm/kernel/moments.hpp"

#include <initializer_list>

#include "property/data.hpp"
#include "support/pace.hpp"

namespace {

using namespace property;
using lnorm::DType;
using lnorm::Int128;
using lnorm::Moments;

constexpr std::array kMeasured{DType::float8_e5m2, DType::float16, DType::bfloat16, DType::float32,
                               DType::float64};

bool same_bits(const std::vector<Moments>& a, const std::vector<Moments>& b) {
  static_assert(sizeof(Moments) == 6 * 8, "no padding");
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Moments)) == 0;
}

// By every kernel, which give the same bits.
Moments measure(const Data& x, std::int64_t ddof) {
  const lnorm::RowsIn row = rows_in(x);
  Moments result;
  lnorm::measure_moments(row, ddof, &result);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    Moments other;
    lnorm::measure_moments(row, ddof, &other, backend);
    CAPTURE(backend.name);
    CHECK(same_bits({other}, {result}));
  }
  return result;
}

// Holds the moments of a finite row against the exact ones, for several ddof.
void check(const Data& x) {
  const auto n = static_cast<std::int64_t>(x.numbers.size());
  const oracle::Integers integers = oracle::integers(x.numbers);
  const auto [min, max] =
      std::minmax_element(integers.numerators.begin(), integers.numerators.end());
  for (const std::int64_t ddof : {std::int64_t{0}, std::int64_t{1}, n / 2, n - 1}) {
    if (ddof >= n) continue;
    const oracle::Row row(x.numbers, {}, false, {}, {.ddof = ddof});
    const Moments actual = measure(x, ddof);
    CAPTURE(ddof);
    CHECK(actual.non_finite == 0);
    CHECK(actual.min ==
          oracle::rounded(oracle::Fraction{*min, 1, integers.exponent}, DType::float64));
    CHECK(actual.max ==
          oracle::rounded(oracle::Fraction{*max, 1, integers.exponent}, DType::float64));
    CHECK(actual.sum == row.sum());
    CHECK(actual.mean == row.mean());
    CHECK(actual.variance == row.variance());
  }
}

// Beside those that layer normalization is tried with: what is hard on the range of a double.
const std::vector<Recipe>& more_recipes() {
  static const std::vector<Recipe> recipes{
      {"1e15 + normal", [](Random& r, DType, int, int) { return 1e15 + normal(r); }},
      {"variance near the largest double",
       [](Random& r, DType, int, int) { return 1e153 * uniform(r); }},
      {"variance beyond the largest double",
       [](Random& r, DType, int, int) { return 1e155 * uniform(r); }},
      {"variance near the smallest normal double",
       [](Random& r, DType, int, int) { return 2e-154 * uniform(r); }},
      {"subnormal variance", [](Random& r, DType, int, int) { return 2e-160 * uniform(r); }},
      {"between two ways to compute",
       [](Random& r, DType, int, int) { return 0x1p-480 * uniform(r); }},
      {"sum that cancels but for the last places",
       [](Random& r, DType, int i, int n) {
         return i == n / 2 ? 1e-3 * uniform(r) : (i < n / 2) == (i % 2 == 0) ? 0x1p40 : -0x1p40;
       }},
      {"sum that cancels to 2^-52 of its terms",
       [](Random&, DType, int i, int n) {
         const double term = std::sin(1 + i % std::max(1, n / 2));
         return i < n / 2 ? term : -term * (1 + i % 3 * 0x1p-52);
       }},
      {"sum that cancels to 2^-100 of its terms",
       [](Random& r, DType, int i, int n) {
         const double term = std::sin(1 + i % std::max(1, n / 2));
         return i == n - 1 ? 0x1p-100 * uniform(r) : i < n / 2 ? term : -term;
       }},
      {"subnormal about the smallest normal",
       [](Random& r, DType d, int, int) {
         return std::ldexp(smallest_positive(d), 10) * (1 + 0.1 * uniform(r));
       }},
      {"at the largest, of one sign",
       [](Random&, DType d, int i, int) { return largest_finite(d) * (i % 2 == 0 ? 1 : 0.5); }},
  };
  return recipes;
}

}  // namespace

TEST_CASE("moments of floats are correctly rounded", "[moments]") {
  const int length = GENERATE(1, 2, 3, 7, 31, 32, 33, 64, 65, 300, 1023, 1024, 1025, 2100);
  for (const DType dtype : kMeasured) {
    for (const auto* recipes : {&float_recipes(), &more_recipes()}) {
      for (const Recipe& recipe : *recipes) {
        static int number = 0;
        if (!support::takes(number++, 3)) continue;
        Random random(static_cast<std::uint64_t>(length));
        INFO(recipe.name << ", " << lnorm::name(dtype) << " x " << length);
        check(floats(dtype, recipe, length, random));
      }
    }
  }
}

// The size of a row's elements is guessed from the rows before it.
TEST_CASE("rows of any size have the moments that each has alone", "[moments]") {
  const int length = GENERATE(1, 2, 4, 5, 8, 16, 32, 64, 96, 768, 1024, 1100);
  const DType dtype = GENERATE(from_range(kFloats));
  const std::int64_t ddof = length > 1 ? GENERATE(0, 1) : 0;
  Random random(static_cast<std::uint64_t>(length));
  constexpr std::int64_t kRows = 70;
  Data rows{dtype, {}, {}};
  for (std::int64_t r = 0; r < kRows; ++r) {
    const int most = dtype == DType::float64 ? 1000 : 12;
    const int exponent = std::uniform_int_distribution<int>(-most, most)(random);
    const double size = std::ldexp(1.0, exponent);
    const Recipe scaled{"scaled",
                        [&](Random& rest, DType, int, int) { return size * normal(rest); }};
    const Recipe& recipe =
        random() % 4 == 0 ? float_recipes()[random() % float_recipes().size()] : scaled;
    append(rows, floats(dtype, recipe, length, random));
  }
  const lnorm::RowsIn all{rows.bytes.data(), dtype, std::endian::native, kRows, length};
  for (const lnorm::Backend& backend : lnorm::backends()) {
    std::vector<Moments> together(kRows);
    lnorm::measure_moments(all, ddof, together.data(), backend);
    for (std::int64_t r = 0; r < kRows; ++r) {
      Moments alone;
      lnorm::measure_moments(lnorm::row_of(all, r), ddof, &alone, lnorm::backends().back());
      const Moments& found = together[static_cast<std::size_t>(r)];
      CAPTURE(backend.name, lnorm::name(dtype), length, ddof, r);
      CHECK(found.non_finite == alone.non_finite);
      for (double Moments::*number :
           {&Moments::sum, &Moments::mean, &Moments::variance, &Moments::min, &Moments::max}) {
        const auto bits = [&](const Moments& moments) {
          return std::bit_cast<std::uint64_t>(moments.*number);
        };
        CHECK(bits(found) == bits(alone));
      }
    }
  }
}

TEST_CASE("moments of integers are correctly rounded", "[moments]") {
  const DType dtype = GENERATE(from_range(kIntegers));
  for (const int length : {1, 2, 5, 32, 33, 300, 1025}) {
    for (const int spread_bits : {1, 5, 17, 40, 64}) {
      INFO(lnorm::name(dtype) << " x " << length << ", " << spread_bits << " bits");
      Random random(static_cast<std::uint64_t>(length * 1000 + spread_bits));
      check(integers(dtype, length, spread_bits, random));
    }
  }
}

TEST_CASE("the ends of the integer dtypes have exact moments", "[moments]") {
  for (const DType dtype : kIntegers) {
    lnorm::visit(dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_integral_v<T>) {
        const Int128 least = std::numeric_limits<T>::min();
        const Int128 most = std::numeric_limits<T>::max();
        CAPTURE(lnorm::name(dtype));
        check(integers(dtype, std::vector{most, most, least}));
        check(integers(dtype, std::vector{most, Int128{most - 1}}));
        check(integers(dtype, std::vector{least, Int128{least + 1}, least}));
      }
    });
  }
}

TEST_CASE("a deviation of 1 about a large mean costs the variance no digit", "[moments]") {
  const DType dtype = GENERATE(DType::float64, DType::int32, DType::int64, DType::uint64);
  const double mean = GENERATE(1e8, 1e15);
  const int length = GENERATE(10, 1000, 20000);
  if (dtype == DType::int32 && mean > 1e9) return;
  Random random(8);
  std::vector<double> values;
  std::vector<Int128> whole;
  for (int i = 0; i < length; ++i) {
    values.push_back(mean + normal(random));
    whole.push_back(static_cast<Int128>(std::round(values.back())));
  }
  const Data x = dtype == DType::float64 ? floats(dtype, values) : integers(dtype, whole);
  const Moments actual = measure(x, 0);
  CAPTURE(lnorm::name(dtype), mean, length);
  CHECK(actual.variance > 0.3);
  CHECK(actual.variance < 3);
  check(x);
}

TEST_CASE("a row of many elements has moments as exact as a short one", "[moments]") {
  const DType dtype = GENERATE(DType::float32, DType::float64);
  Random random(9);
  const Recipe recipe{"all but constant", [](Random& r, DType d, int, int) {
                        return 1 + (d == DType::float32 ? 0x1p-21 : 0x1p-50) * normal(r);
                      }};
  check(floats(dtype, recipe, support::share(300'007), random));
}

// Double-doubles leave these sums undecided; sums in three doubles need not.
TEST_CASE("the sum of a long row is exact where its terms cancel", "[moments]") {
  const DType dtype = GENERATE(DType::float32, DType::float64);
  const int length = GENERATE(33'000, 65'536, 70'001);
  const auto term = [](int i, int n) { return std::sin(1 + i % (n / 2)); };
  const std::vector<Recipe> recipes{
      {"to what rounding leaves",
       [&](Random& r, DType, int i, int n) {
         return i < n / 2 ? term(i, n) : -term(i, n) * (1 + static_cast<int>(r() % 3) * 0x1p-52);
       }},
      {"to 0",
       [&](Random&, DType, int i, int n) {
         return i == n / 2 * 2 ? 0 : i < n / 2 ? term(i, n) : -term(i, n);
       }},
      {"to a tie",
       [&](Random&, DType, int i, int n) {
         if (i < 2) return i == 0 ? 0x1p53 : 1.0;
         return i % 2 == 0 ? term(i / 2, n) : -term(i / 2, n);
       }},
  };
  for (const Recipe& recipe : recipes) {
    static int number = 0;
    if (!support::takes(number++, 3)) continue;
    Random random(10);
    INFO(recipe.name << ", " << lnorm::name(dtype) << " x " << length);
    check(floats(dtype, recipe, length, random));
  }
}

TEST_CASE("a constant row has exactly its element for mean, and no variance", "[moments]") {
  const auto check_constant = [](const Data& x, std::int64_t length) {
    const oracle::Row row(x.numbers, {}, false, {}, {});
    const double element = row.mean();
    for (const std::int64_t ddof : {std::int64_t{0}, length - 1}) {
      const Moments actual = measure(x, ddof);
      CAPTURE(lnorm::name(x.dtype), element, length, ddof, actual.mean, actual.variance);
      CHECK(actual.mean == element);
      CHECK(actual.variance == 0);
      CHECK(actual.min == element);
      CHECK(actual.max == element);
      CHECK(actual.sum == row.sum());
    }
  };
  std::vector<std::int64_t> lengths{1000, 1023, 1024, 1025, 1026, 2049};
  for (std::int64_t length = 1; length <= support::share(70); ++length) lengths.push_back(length);
  constexpr Int128 kTwo52 = Int128{1} << 52;
  for (const std::int64_t length : lengths) {
    const auto n = static_cast<std::size_t>(length);
    for (const double value : {0.1, -1.0 / 3, -1e30, 3e-40, -0.0, 1e300, -1e308, 5e-324, 65504.0}) {
      for (const DType dtype : kMeasured) {
        const double most = largest_finite(dtype);
        check_constant(floats(dtype, std::vector(n, std::clamp(value, -most, most))), length);
      }
    }
    for (const Int128 value : {Int128{0}, Int128{-77}, Int128{2'147'483'647}, kTwo52 + 1,
                               2 * kTwo52 + 1, -2 * kTwo52 - 1, 512 * kTwo52 + 257,
                               1024 * kTwo52 + 513, 2048 * kTwo52 - 1, -2048 * kTwo52}) {
      for (const DType dtype : {DType::int8, DType::int32, DType::int64, DType::uint64}) {
        check_constant(integers(dtype, std::vector(n, value)), length);
      }
    }
  }
}

TEST_CASE("zeros of both signs are a constant row", "[moments]") {
  const Moments actual = measure(floats(DType::float64, std::vector{0.0, -0.0, 0.0}), 1);
  CHECK(actual.sum == 0);
  CHECK(actual.mean == 0);
  CHECK(actual.variance == 0);
  CHECK(actual.min == 0);
  CHECK(actual.max == 0);
}

TEST_CASE("a row without elements has the sum 0 and nothing else", "[moments]") {
  for (const DType dtype : {DType::float32, DType::float64, DType::int64}) {
    std::vector<Moments> actual(3);
    const std::byte nothing{};
    lnorm::measure_moments({&nothing, dtype, std::endian::native, 3, 0}, 1, actual.data());
    for (const Moments& row : actual) {
      CHECK(row.non_finite == 0);
      CHECK(row.sum == 0);
      for (const double value : {row.mean, row.variance, row.min, row.max}) {
        CHECK(std::isnan(value));
      }
    }
  }
}

TEST_CASE("NaN and infinities are counted and leave min and max of the rest", "[moments]") {
  const DType dtype = GENERATE(from_range(kMeasured));
  const auto expect = [&](std::vector<double> values, std::int64_t count, double min, double max) {
    CAPTURE(lnorm::name(dtype), values.size(), count, min, max);
    const Moments actual = measure(floats(dtype, values), 0);
    CHECK(actual.non_finite == count);
    CHECK(std::isnan(actual.sum));
    CHECK(std::isnan(actual.mean));
    CHECK(std::isnan(actual.variance));
    CHECK((actual.min == min || (std::isnan(min) && std::isnan(actual.min))));
    CHECK((actual.max == max || (std::isnan(max) && std::isnan(actual.max))));
  };
  expect({kNan}, 1, kNan, kNan);
  expect({kNan, -kNan, kNan}, 3, kNan, kNan);
  expect({kInfinity}, 1, kInfinity, kInfinity);
  expect({-kInfinity, -kInfinity}, 2, -kInfinity, -kInfinity);
  expect({kInfinity, -kInfinity}, 2, -kInfinity, kInfinity);
  expect({kNan, 2, 1}, 1, 1, 2);
  expect({-3, kNan, -2, kInfinity}, 2, -3, kInfinity);
  expect({kNan, -kInfinity, 5}, 2, -kInfinity, 5);
  // One at every place of a row, about the lengths that matter to the loops.
  for (const std::size_t length :
       std::initializer_list<std::size_t>{1, 2, 31, 32, 33, 1023, 1024, 1025, 1060}) {
    for (const std::size_t place : {std::size_t{0}, length / 2, length - 1}) {
      std::vector<double> values(length, 1.5);
      values[place] = kNan;
      expect(values, 1, length == 1 ? kNan : 1.5, length == 1 ? kNan : 1.5);
      values[place] = kInfinity;
      expect(values, 1, length == 1 ? kInfinity : 1.5, kInfinity);
    }
  }
}

TEST_CASE("a sum beyond the largest double is infinite, and its mean is not", "[moments]") {
  const double most = std::numeric_limits<double>::max();
  for (const double sign : {1.0, -1.0}) {
    const Data x = floats(DType::float64, std::vector{sign * most, sign * most / 2, sign * most});
    check(x);
    const Moments actual = measure(x, 0);
    CHECK(actual.sum == sign * kInfinity);
    CHECK(std::isfinite(actual.mean));
    CHECK(actual.variance == kInfinity);
  }
  // Only the partial sums are too large.
  const Data x = floats(DType::float64, std::vector{most, most, -most, -most, 3.0});
  check(x);
  CHECK(measure(x, 0).sum == 3);
}

TEST_CASE("any byte but 0 is true", "[moments]") {
  const std::array<unsigned char, 4> bytes{0, 1, 2, 255};
  Moments actual;
  lnorm::measure_moments(
      {std::as_bytes(std::span(bytes)).data(), DType::boolean, std::endian::native, 1, 4}, 0,
      &actual);
  CHECK(actual.sum == 3);
  CHECK(actual.mean == 0.75);
  CHECK(actual.variance == 0.1875);
}

TEST_CASE("moments are the same however rows are grouped, whatever the byte order", "[moments]") {
  constexpr int kRows = 7;
  const int length = GENERATE(1, 5, 33, 1030);
  std::vector<DType> dtypes(kMeasured.begin(), kMeasured.end());
  dtypes.insert(dtypes.end(), kIntegers.begin(), kIntegers.end());
  for (const DType dtype : dtypes) {
    CAPTURE(lnorm::name(dtype), length);
    Random random(5);
    Data x{dtype, {}, {}};
    for (int r = 0; r < kRows; ++r) {
      // Rows that go different ways, one after another.
      const Recipe& recipe = more_recipes()[static_cast<std::size_t>(r)];
      append(x, lnorm::is_floating(dtype) ? floats(dtype, recipe, length, random)
                                          : integers(dtype, length, 7 + 9 * r, random));
    }
    const auto run = [&](const std::byte* data, std::endian order, std::int64_t rows_a_call) {
      std::vector<Moments> result(kRows);
      in_calls({data, dtype, order, kRows, length}, rows_a_call,
               [&](const lnorm::RowsIn& rows, std::int64_t first) {
                 lnorm::measure_moments(rows, 0, result.data() + first);
               });
      return result;
    };
    const auto all = run(x.bytes.data(), std::endian::native, kRows);
    CHECK(same_bits(run(x.bytes.data(), std::endian::native, 1), all));
    CHECK(same_bits(run(x.bytes.data(), std::endian::native, 3), all));
    CHECK(same_bits(run(swapped(x.bytes, dtype).data(), kOtherByteOrder, 2), all));
    // Alignment makes no difference either.
    std::vector<std::byte> odd(x.bytes.size() + 1);
    std::copy(x.bytes.begin(), x.bytes.end(), odd.begin() + 1);
    CHECK(same_bits(run(odd.data() + 1, std::endian::native, kRows), all));
  }
}
