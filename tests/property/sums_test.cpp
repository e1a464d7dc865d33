// Sums of two tensors, and rows of such sums, against exact arithmetic: not one result may differ.

#include <boost/multiprecision/cpp_int.hpp>

#include "lnorm/kernel/add.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/moments.hpp"
#include "property/data.hpp"

namespace {

using namespace property;
using lnorm::DType;
using oracle::Number;
using Rational = boost::multiprecision::cpp_rational;

constexpr std::array kAll{DType::boolean, DType::int8,    DType::int16,    DType::int32,
                          DType::int64,   DType::uint8,   DType::uint16,   DType::uint32,
                          DType::uint64,  DType::float16, DType::bfloat16, DType::float32,
                          DType::float64};

Rational exact(const Number& number) {
  if (number.is_integer) return boost::multiprecision::cpp_int(number.integer);
  return Rational(number.value) + Rational(number.low);
}

double rounded(const Rational& value, DType dtype) {
  return oracle::rounded(oracle::Fraction{numerator(value), denominator(value), 0}, dtype);
}

Data data_of_any(DType dtype, int length, Random& random) {
  if (!lnorm::is_floating(dtype)) return integers(dtype, length, 64, random);
  const Recipe recipe{"wide", [](Random& r, DType d, int i, int) {
                        if (i % 5 == 0) return largest_finite(d) * uniform(r);
                        if (i % 5 == 1) return 100 * smallest_positive(d) * uniform(r);
                        return normal(r);
                      }};
  return floats(dtype, recipe, length, random);
}

std::vector<std::byte> add(const Data& a, const Data& b, DType dtype) {
  std::vector<std::byte> sum(a.numbers.size() * lnorm::item_size(dtype));
  lnorm::add(rows_in(a), rows_in(b), {sum.data(), dtype});
  return sum;
}

// The exact sums, rounded once.
std::vector<double> rounded_sums(const Data& a, const Data& b, DType dtype) {
  std::vector<double> sums;
  for (std::size_t i = 0; i < a.numbers.size(); ++i) {
    sums.push_back(rounded(exact(a.numbers[i]) + exact(b.numbers[i]), dtype));
  }
  return sums;
}

struct Pair {
  double high;
  double low;
};

std::vector<Pair> pairs_of(const std::vector<std::byte>& bytes) {
  std::vector<Pair> pairs(bytes.size() / sizeof(Pair));
  std::memcpy(pairs.data(), bytes.data(), bytes.size());
  return pairs;
}

// The exact sums, as their own data. Those beyond float64 are infinite.
Data sums_of(const Data& a, const Data& b) {
  Data result{DType::float64_pair, {}, {}};
  for (std::size_t i = 0; i < a.numbers.size(); ++i) {
    const Rational sum = exact(a.numbers[i]) + exact(b.numbers[i]);
    const double high = rounded(sum, DType::float64);
    const double low = std::isfinite(high) ? rounded(sum - Rational(high), DType::float64) : 0;
    const Pair pair{high, low};
    const auto bytes = std::as_bytes(std::span(&pair, 1));
    result.bytes.insert(result.bytes.end(), bytes.begin(), bytes.end());
    result.numbers.push_back({high, 0, false, low});
  }
  return result;
}

}  // namespace

TEST_CASE("sums of elements of any two dtypes are exact, or rounded once", "[sums]") {
  Random random(1);
  for (const DType a_dtype : kAll) {
    for (const DType b_dtype : kAll) {
      const Data a = data_of_any(a_dtype, 67, random);
      Data b = data_of_any(b_dtype, 67, random);
      CAPTURE(name(a_dtype), name(b_dtype));
      for (const DType out : kFloats) {
        CAPTURE(name(out));
        check_same(read_all(add(a, b, out), out), rounded_sums(a, b, out));
      }
      const auto dtype = lnorm::exact_sum_dtype(a_dtype, b_dtype);
      const auto is_long = [](DType d) { return d == DType::int64 || d == DType::uint64; };
      const bool is_refused = (is_long(a_dtype) && lnorm::is_floating(b_dtype)) ||
                              (is_long(b_dtype) && lnorm::is_floating(a_dtype));
      REQUIRE(dtype.has_value() != is_refused);
      if (!dtype) continue;
      const std::vector<std::byte> sum = add(a, b, *dtype);
      const Data expected = sums_of(a, b);
      if (*dtype == DType::float64_pair) {
        CHECK(sum == expected.bytes);
      } else {
        const std::vector<double> actual = read_all(sum, *dtype);
        for (std::size_t i = 0; i < actual.size(); ++i) {
          CHECK(
              (same_number(actual[i], expected.numbers[i].value) && expected.numbers[i].low == 0));
        }
      }
    }
  }
}

TEST_CASE("sums that lie halfway between two results go to even", "[sums]") {
  Random random(2);
  for (const DType out : {DType::float16, DType::bfloat16, DType::float32}) {
    const int precision = out == DType::float16 ? 11 : out == DType::bfloat16 ? 8 : 24;
    Data a{DType::float64, {}, {}};
    Data b{DType::float64, {}, {}};
    for (int i = 0; i < 300; ++i) {
      append_rounded(a, 1 + std::ldexp(static_cast<double>(random() % 100), 1 - precision));
      const double half = std::ldexp(1.0, -precision);
      append_rounded(b, i % 3 == 0 ? half : half * (1 + std::ldexp(uniform(random), -50)));
    }
    check_same(read_all(add(a, b, out), out), rounded_sums(a, b, out));
  }
}

TEST_CASE("what is not finite, or zero, adds up by IEEE's rules to +0 and one NaN", "[sums]") {
  const std::vector<double> a{kInfinity, -kInfinity, kInfinity, kNan, -0.0, 1, 2};
  const std::vector<double> b{1, 2, -kInfinity, 1, -0.0, -1, -kInfinity};
  for (const DType dtype : kFloats) {
    CAPTURE(name(dtype));
    const Data from_a = floats(dtype, a);
    const Data from_b = floats(dtype, b);
    const std::vector<double> numbers{kInfinity, -kInfinity, kNan, kNan, 0, 0, -kInfinity};
    check_same(read_all(add(from_a, from_b, dtype), dtype), numbers);
    const std::vector<Pair> pairs = pairs_of(add(from_a, from_b, DType::float64_pair));
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      CHECK(same_number(pairs[i].high, numbers[i]));
      CHECK(pairs[i].low == 0);
    }
  }
}

TEST_CASE("pairs are rounded once to every float", "[sums]") {
  Random random(3);
  const Data pairs =
      sums_of(data_of_any(DType::float64, 500, random), data_of_any(DType::float32, 500, random));
  for (const DType out : kFloats) {
    std::vector<std::byte> result(500 * lnorm::item_size(out));
    lnorm::round_row(rows_in(pairs), {result.data(), out});
    std::vector<double> expected;
    for (const Number& pair : pairs.numbers) expected.push_back(rounded(exact(pair), out));
    check_same(read_all(result, out), expected);
  }
}

namespace {

struct Sum {
  std::string name;
  std::function<double(Random&, int)> x;
  std::function<double(Random&, int)> residual;
};

// Of float64, whose sums have low parts of every size.
const std::vector<Sum>& sums() {
  static const std::vector<Sum> all{
      {"of one size", [](Random& r, int) { return normal(r); },
       [](Random& r, int) { return normal(r); }},
      {"a tiny part", [](Random& r, int) { return normal(r); },
       [](Random& r, int) { return 1e-30 * normal(r); }},
      {"what cancels", [](Random&, int i) { return i + 0.1; },
       [](Random& r, int i) { return -(i + 0.1) + 1e-12 * normal(r); }},
      {"far from zero", [](Random& r, int) { return 1e8 + normal(r); },
       [](Random& r, int) { return 1e-3 * normal(r); }},
      {"farther from zero", [](Random&, int) { return 1e15; },
       [](Random& r, int) { return 1e-3 * normal(r); }},
      {"the center and its opposite",
       [](Random& r, int i) { return i % 2 == 0 ? 3 : 1e-3 * normal(r); },
       [](Random& r, int i) { return i % 2 == 0 ? 1e-17 * normal(r) : 1e-20; }},
      {"constant", [](Random&, int) { return 0.1; }, [](Random&, int) { return 1e-20; }},
      {"constant but for low parts", [](Random&, int) { return 0.1; },
       [](Random& r, int) { return 1e-20 * normal(r); }},
      {"zeros", [](Random&, int i) { return i * 0.1; }, [](Random&, int i) { return -i * 0.1; }},
      {"one outlier", [](Random& r, int i) { return i == 0 ? 1e10 : normal(r); },
       [](Random& r, int) { return 1e-9 * normal(r); }},
      {"tiny", [](Random& r, int) { return 1e-300 * normal(r); },
       [](Random& r, int) { return 1e-318 * normal(r); }},
      {"large", [](Random& r, int) { return 1e307 * uniform(r); },
       [](Random& r, int) { return 1e290 * uniform(r); }},
      {"too large", [](Random&, int) { return 1.5e308; }, [](Random&, int) { return 1e308; }},
  };
  return all;
}

Data data_of(const std::function<double(Random&, int)>& element, DType dtype, int length,
             Random& random) {
  const Recipe recipe{"", [&](Random& r, DType, int i, int) { return element(r, i); }};
  return floats(dtype, recipe, length, random);
}

}  // namespace

TEST_CASE("rows of exact sums are normalized and measured as they are", "[sums]") {
  const int length = GENERATE(1, 2, 3, 33, 257, 1100);
  Random random(static_cast<std::uint64_t>(length));
  for (const Sum& sum : sums()) {
    for (const DType dtype : {DType::float32, DType::float64}) {
      const Data x = sums_of(data_of(sum.x, dtype, length, random),
                             data_of(sum.residual, dtype, length, random));
      const lnorm::RowsIn row = rows_in(x);
      lnorm::Formula formula;
      formula.rms = random() % 3 == 0;
      formula.ddof = length > 1 && random() % 2 == 0 ? 1 : 0;
      formula.eps = random() % 2 == 0 ? 1e-5 : 1e-30;
      const DType out = kFloats[random() % kFloats.size()];
      const Data weight = floats(DType::float32, kNormal, length, random);
      const oracle::Row expected(x.numbers, weight.numbers, false, {}, formula);
      const lnorm::Affine affine(term(weight), {});
      INFO(sum.name << ", " << name(dtype) << " x " << length << " to " << name(out)
                    << (formula.rms ? ", rms" : "") << ", eps " << formula.eps);
      const bool has_numbers = expected.is_finite() && expected.is_defined();
      std::vector<double> y;
      for (std::size_t i = 0; i < x.numbers.size(); ++i) {
        y.push_back(has_numbers ? expected.y(i, out) : kNan);
      }
      check_kernels(x, {nullptr, out}, affine, formula, y, expected);
      if (!expected.is_finite()) continue;
      for (const lnorm::Backend& backend : lnorm::backends()) {
        CAPTURE(backend.name);
        lnorm::Moments moments;
        lnorm::measure_moments(row, 0, &moments, backend);
        const oracle::Row plain(x.numbers, {}, false, {}, {});
        CHECK(moments.sum == plain.sum());
        CHECK(moments.mean == plain.mean());
        CHECK(moments.variance == plain.variance());
      }
    }
  }
}

TEST_CASE("softmax of exact sums is exact", "[sums][softmax]") {
  Random random(5);
  for (const Sum& sum : sums()) {
    const Data x = sums_of(data_of(sum.x, DType::float64, 20, random),
                           data_of(sum.residual, DType::float64, 20, random));
    if (!std::isfinite(x.numbers.front().value)) continue;
    for (const DType out : {DType::float32, DType::float64}) {
      INFO(sum.name << " to " << name(out));
      CHECK(read_all(softmax(rows_in(x), out), out) == oracle::softmax(x.numbers, out));
    }
  }
}
