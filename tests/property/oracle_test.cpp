// Every kernel against exact arithmetic: not one result may differ from the correctly rounded one.

#include "support/oracle.hpp"

#include <iterator>
#include <sstream>

#include "lnorm/kernel/layer_norm.hpp"
#include "property/data.hpp"
#include "support/pace.hpp"

namespace {

using namespace property;
using lnorm::DType;
using lnorm::Formula;
using oracle::Number;

struct Settings {
  Formula formula = {};
  DType out = DType::float64;
  bool weight = false;
  bool bias = false;
  bool plus_one = false;
  bool saturates = false;
  double scale = 1;
};

// The same number for all elements.
lnorm::AffineTerm one_for_all(double value) {
  return {{"one", DType::float64, {}}, doubles({value}).bytes, false};
}

// What is read of a result where it is written, with an infinity that stands for what is beyond the greatest number.
double stored(double y, const Settings& settings) {
  if (!std::isinf(y)) return y;
  if (settings.saturates) return std::copysign(largest_finite(settings.out), y);
  return settings.out == DType::float8_e4m3fn ? std::nan("") : y;
}

std::string describe(const Settings& s) {
  std::ostringstream out;
  out << "--dtype " << lnorm::name(s.out) << " --eps " << s.formula.eps << " --eps-on "
      << (s.formula.eps_on == lnorm::EpsOn::std ? "std" : "variance") << " --ddof "
      << s.formula.ddof << (s.formula.rms ? " --rms" : "") << (s.weight ? " --weight" : "")
      << (s.plus_one ? " --zero-centered-weight" : "") << (s.bias ? " --bias" : "")
      << " --output-scale " << s.scale << (s.saturates ? " --saturate" : "");
  return out.str();
}

// Runs every kernel on the row and holds each result against the exact one.
void check(const Data& x, const Settings& settings, const Data& weight, const Data& bias) {
  const auto length = static_cast<std::int64_t>(x.numbers.size());
  INFO(lnorm::name(x.dtype) << " x " << length << ", " << describe(settings));
  const lnorm::Affine affine(
      settings.weight ? term(weight, settings.plus_one) : lnorm::AffineTerm(),
      settings.bias ? term(bias, false) : lnorm::AffineTerm(), settings.scale);
  const auto none = std::span<const Number>{};
  const oracle::Row row(x.numbers, settings.weight ? std::span(weight.numbers) : none,
                        settings.plus_one, settings.bias ? std::span(bias.numbers) : none,
                        settings.formula, settings.scale);
  const bool has_numbers = row.is_finite() && row.is_defined();
  std::vector<double> expected;
  for (std::size_t i = 0; i < x.numbers.size(); ++i) {
    expected.push_back(has_numbers ? stored(row.y(i, settings.out), settings) : std::nan(""));
  }
  check_kernels(x, {.data = nullptr, .dtype = settings.out, .saturates = settings.saturates},
                affine, settings.formula, expected, row);
}

Settings random_settings(Random& random, DType out, int length) {
  Settings settings;
  settings.out = out;
  settings.formula = any_formula(random, length);
  settings.weight = random() % 2 == 0;
  settings.bias = random() % 2 == 0;
  settings.plus_one = random() % 3 == 0;
  if (lnorm::is_float8(out)) {
    constexpr std::array kScales{1.0, 1.0, 448.0, -1.1, 3e-3, 1e300, 5e-324, 0.0};
    settings.scale = kScales[random() % kScales.size()];
    settings.saturates = random() % 2 == 0;
  }
  return settings;
}

}  // namespace

TEST_CASE("every result of floats is correctly rounded", "[oracle]") {
  const int length = GENERATE(1, 2, 3, 7, 17, 31, 32, 33, 768, 1025);
  int number = length;
  for (const DType in : kFloats) {
    for (const Recipe& recipe : float_recipes()) {
      if (!support::takes(number++, 2)) continue;
      Random random(static_cast<std::uint64_t>(length) * 7919 + static_cast<std::uint64_t>(in));
      for (const DType out : kFloats) {
        const Settings settings = random_settings(random, out, length);
        CAPTURE(recipe.name);
        const Data x = floats(in, recipe, length, random);
        const DType affine_dtype = kFloats[random() % kFloats.size()];
        check(x, settings, floats(affine_dtype, kNormal, length, random),
              floats(affine_dtype, kNormal, length, random));
      }
    }
  }
}

TEST_CASE("every float8 is correctly rounded, scaled or not, saturating or not",
          "[oracle][float8]") {
  const int length = GENERATE(1, 2, 7, 33, 768);
  const DType in =
      GENERATE(DType::float8_e4m3fn, DType::float8_e5m2, DType::float32, DType::float64);
  static int number = 0;
  for (const Recipe& recipe : float_recipes()) {
    if (!support::takes(number++)) continue;
    Random random(static_cast<std::uint64_t>(length) * 131 + static_cast<std::uint64_t>(in));
    for (const DType out : kFloat8s) {
      const Settings settings = random_settings(random, out, length);
      CAPTURE(recipe.name);
      const Data x = floats(in, recipe, length, random);
      const DType affine_dtype = random() % 2 == 0 ? DType::float64 : DType::float8_e4m3fn;
      check(x, settings, floats(affine_dtype, kNormal, length, random),
            floats(affine_dtype, kNormal, length, random));
    }
  }
}

TEST_CASE("what a float8 is read from may be wider, and what it is of may be one",
          "[oracle][float8]") {
  Random random(18);
  for (const DType float8 : kFloat8s) {
    for (const DType out : kFloats) {
      const Settings settings = random_settings(random, out, 65);
      const Data terms = floats(float8, kNormal, 65, random);
      check(floats(float8, kNormal, 65, random), settings, terms, terms);
    }
    for (const DType in : {DType::int64, DType::uint64, DType::int8}) {
      Settings settings = random_settings(random, float8, 65);
      settings.weight = settings.bias = true;
      settings.scale = 0x1.123456789abcdp-60;
      const Data x = integers(in, 65, 60, random);
      check(x, settings, x, x);  // of 64-bit terms products with the scale are not exact
    }
  }
}

TEST_CASE("every result of integers is correctly rounded", "[oracle]") {
  const DType in = GENERATE(from_range(kIntegers));
  static int number = 0;
  for (const int length : {1, 2, 5, 17, 300}) {
    for (const int spread_bits : {1, 5, 17, 40, 64}) {
      if (!support::takes(number++)) continue;
      for (const DType out : kFloats) {
        Random random(static_cast<std::uint64_t>(length * 1000 + spread_bits));
        const Settings settings = random_settings(random, out, length);
        CAPTURE(spread_bits);
        check(integers(in, length, spread_bits, random), settings,
              floats(DType::float32, kNormal, length, random),
              floats(DType::float32, kNormal, length, random));
      }
    }
  }
}

TEST_CASE("a row of a million elements is as exact as a short one", "[oracle][long]") {
  const DType dtype = GENERATE(DType::float16, DType::float32, DType::float64);
  const std::string name = GENERATE(as<std::string>{}, "large mean, small deviation", "constant",
                                    "rising", "all but one constant");
  // The oracle takes its time.
  const bool is_longest = dtype == DType::float32 && name == "rising";
  static int number = 0;
  if (!is_longest && !support::takes(number++, 4)) return;
  const int length = support::share(is_longest ? 1'000'003 : 50'003);
  Random random(17);
  CAPTURE(name);
  const Settings settings{.formula = {.ddof = name == "large mean, small deviation" ? 1 : 0},
                          .out = dtype,
                          .weight = name == "rising",
                          .bias = true};
  check(floats(dtype, recipe(name), length, random), settings,
        floats(dtype, kNormal, length, random), floats(dtype, kNormal, length, random));
}

TEST_CASE("a constant row gives exactly the bias, whatever its length", "[oracle][long]") {
  const int length = GENERATE(1, 2, 3, 10, 33, 1000, 4097, 1'000'003);
  const DType dtype = GENERATE(DType::float16, DType::float32, DType::float64);
  const double value = GENERATE(0.1, -1e30, 3e-40, -0.0);
  static int number = 0;
  if (!support::takes(number++, 3)) return;
  const double most = largest_finite(dtype);
  const Data x =
      floats(dtype, std::vector(static_cast<std::size_t>(length), std::clamp(value, -most, most)));
  const std::size_t size = lnorm::item_size(dtype);
  const auto zeros = std::vector<std::byte>(x.bytes.size());
  const double bias_value = 0.25;
  const lnorm::Affine affine({}, one_for_all(bias_value));
  for (const lnorm::Backend& backend : lnorm::backends()) {
    if (backend.table == nullptr && length > 5000) continue;  // takes its time
    CAPTURE(backend.name, value, lnorm::name(dtype), length);
    const auto run = [&](const Formula& formula, const lnorm::Affine& with) {
      return normalized(backend, rows_in(x), dtype, with, formula);
    };
    CHECK((run(Formula{}, {}) == zeros));  // +0, not -0
    const auto biased = run(Formula{}, affine);
    bool all_bias = true;
    for (std::size_t i = 0; i < biased.size(); i += size) {
      all_bias = all_bias && read(biased.data() + i, dtype) == bias_value;
    }
    CHECK(all_bias);
    CHECK(std::isnan(read(run(Formula{.eps = 0}, affine).data(), dtype)));
  }
}

TEST_CASE("a bias that cancels a whole row leaves results that are still right", "[oracle]") {
  Random random(5);
  for (const DType dtype : kFloats) {
    const Data x = floats(dtype, kNormal, 100, random);
    const oracle::Row row(x.numbers, {}, false, {}, Formula{});
    Data bias{dtype, {}, {}};
    for (std::size_t i = 0; i < x.numbers.size(); ++i) append_rounded(bias, -row.y(i, dtype));
    check(x, {.out = dtype, .bias = true}, bias, bias);
  }
}

TEST_CASE("weights and biases at the ends of the range stay exact or overflow rightly",
          "[oracle]") {
  Random random(6);
  for (const DType in : kFloats) {
    for (const DType affine_dtype : kFloats) {
      CAPTURE(lnorm::name(affine_dtype));
      const Data x = floats(in, kNormal, 64, random);
      check(x, {.out = in, .weight = true, .bias = true}, floats(affine_dtype, kEnds, 64, random),
            floats(affine_dtype, kEnds, 64, random));
    }
  }
}

TEST_CASE("rows come out the same however they are grouped, whatever the byte order", "[kernel]") {
  Random random(3);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    CAPTURE(backend.name);
    const Data x = floats(DType::float32, kNormal, 7 * 45, random);
    const auto run = [&](const std::vector<std::byte>& bytes, std::endian order,
                         std::int64_t rows_a_call) {
      std::vector<std::byte> y(x.bytes.size());
      const lnorm::RowsOut out{y.data(), DType::float32};
      in_calls({bytes.data(), DType::float32, order, 7, 45}, rows_a_call,
               [&](const lnorm::RowsIn& rows, std::int64_t first) {
                 backend.layer_norm(rows, row_of(out, 45, first), {}, Formula{}, {});
               });
      return y;
    };
    const auto all = run(x.bytes, std::endian::native, 7);
    CHECK(run(x.bytes, std::endian::native, 1) == all);
    CHECK(run(x.bytes, std::endian::native, 2) == all);
    CHECK(run(swapped(x.bytes, x.dtype), kOtherByteOrder, 7) == all);
  }
}

TEST_CASE("rows of one element have the bias, or NaN where they have no number", "[kernel]") {
  std::vector<double> values(1500, 3);
  values[0] = values[1100] = kNan;
  values[2] = -kInfinity;
  const auto n = static_cast<std::int64_t>(values.size());
  const lnorm::Affine affine({}, one_for_all(0.5));
  for (const lnorm::Backend& backend : lnorm::backends()) {
    for (const DType dtype : kFloats) {
      for (const double eps : {1e-5, 0.0}) {
        CAPTURE(backend.name, lnorm::name(dtype), eps);
        const Data x = floats(dtype, values);
        const std::vector<double> actual =
            read_all(normalized(backend, rows_in(x, n), dtype, affine, {.eps = eps}), dtype);
        for (std::size_t i = 0; i < values.size(); ++i) {
          const bool has_number = eps > 0 && std::isfinite(values[i]);
          CHECK((has_number ? actual[i] == 0.5 : std::isnan(actual[i])));
        }
      }
    }
  }
}

TEST_CASE("asking for the statistics does not change the result", "[kernel]") {
  Random random(4);
  const Data x = floats(DType::float32, kNormal, 4096, random);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    double mean[64];
    double rstd[64];
    const lnorm::RowsIn rows = rows_in(x, 64);
    CHECK(normalized(backend, rows, x.dtype, {}, {}, {mean, rstd}) ==
          normalized(backend, rows, x.dtype));
  }
}

namespace {

// Halfway between two numbers of dtype near 1, and near the ends of its range.
std::vector<double> halfway_numbers(DType dtype) {
  switch (dtype) {
    case DType::float8_e4m3fn:
      return {1 + 0x1p-4, 1 + 0x3p-4, -(1 + 0x1p-4), 0x1p-10, 0x3p-10, 464, 0x1p-6 - 0x1p-10, -464};
    case DType::float8_e5m2:
      return {1 + 0x1p-3, 1 + 0x3p-3, -(1 + 0x1p-3),     0x1p-17,
              0x3p-17,    61440,      0x1p-14 - 0x1p-17, -61440};
    case DType::float16:
      return {1 + 0x1p-11, 1 + 0x3p-11, -(1 + 0x1p-11),   0x1p-25,
              0x3p-25,     65520.0,     0x1p-14 - 0x1p-25};
    case DType::bfloat16:
      return {1 + 0x1p-8, 1 + 0x3p-8, -(1 + 0x1p-8), 0x1p-134, 0x3p-134, 0x1.ffp127, -0x1.ffp127};
    default:
      return {1 + 0x1p-24, 1 + 0x3p-24,    -(1 + 0x1p-24),     0x1p-150,
              0x3p-150,    0x1.ffffffp127, 0x1p-126 - 0x1p-150};
  }
}

}  // namespace

TEST_CASE("built ties go to even, and what is next to them to its side", "[oracle]") {
  const DType dtype = GENERATE(DType::float8_e4m3fn, DType::float8_e5m2, DType::float16,
                               DType::bfloat16, DType::float32);
  const int length = GENERATE(2, 64, 130);
  // Rows of -1 and 1 with eps 0 are their own xhat.
  const auto n = static_cast<std::size_t>(length);
  std::vector<double> signs;
  for (int i = 0; i < length; ++i) signs.push_back(i % 2 == 0 ? -1 : 1);
  const Data x = floats(dtype, signs);
  for (const double tie : halfway_numbers(dtype)) {
    // In the bias, where a tiny weight decides the side.
    for (const double tail : {0.0, 0x1p-46, 0x1p-100, 0x1p-300, -0x1p-46, -0x1p-300}) {
      CAPTURE(tie, tail);
      check(x, {.formula = {.eps = 0}, .out = dtype, .weight = true, .bias = true},
            doubles(std::vector(n, tail * std::fabs(tie))), doubles(std::vector(n, tie)));
    }
    // In the weight: halfway, and a last place of float64 to either side.
    for (const int side : {-1, 0, 1}) {
      const Data weight =
          doubles(std::vector(n, tie + side * std::ldexp(1.0, std::ilogb(tie) - 52)));
      CAPTURE(tie, side);
      check(x, {.formula = {.eps = 0}, .out = dtype, .weight = true}, weight, weight);
    }
  }
}

TEST_CASE("ties of float8 are seen behind a scale", "[oracle][float8]") {
  const DType dtype = GENERATE(from_range(kFloat8s));
  const bool saturates = GENERATE(false, true);
  const Data x = floats(DType::float32, std::vector<double>{-1, 1, 1, -1});
  for (const double tie : halfway_numbers(dtype)) {
    for (const double scale : {1.0, 1024.0, -0.5, 0x1p-900, 0x1p900}) {
      for (const double tail : {0.0, 0x1p-40, -0x1p-40, 0x1p-110}) {
        Settings settings{.formula = {.eps = 0}, .out = dtype, .weight = true, .bias = true};
        settings.saturates = saturates;
        settings.scale = scale;
        CAPTURE(tie, tail);
        check(x, settings, doubles(std::vector(4, tail * tie / scale)),
              doubles(std::vector(4, tie / scale)));
      }
    }
  }
}

TEST_CASE("infinite weights and biases saturate, and NaN does not", "[oracle][float8]") {
  const Data x = floats(DType::float32, std::vector<double>{-1, 0, 1, 0});
  const Data weight = floats(DType::float32, std::vector<double>{kInfinity, kInfinity, 1, kNan});
  const lnorm::Affine affine(term(weight, false), {}, 2);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    for (const DType dtype : kFloat8s) {
      for (const bool saturates : {false, true}) {
        CAPTURE(backend.name, lnorm::name(dtype), saturates);
        std::array<std::byte, 4> y{};
        backend.layer_norm(rows_in(x), {.data = y.data(), .dtype = dtype, .saturates = saturates},
                           affine, {}, {});
        const double first = read(&y[0], dtype);
        if (saturates) {
          CHECK(first == -largest_finite(dtype));
        } else {
          CHECK((dtype == DType::float8_e5m2 ? first == -kInfinity : std::isnan(first)));
        }
        CHECK(std::isnan(read(&y[1], dtype)));  // infinity times 0
        CHECK(read(&y[2], dtype) == (dtype == DType::float8_e4m3fn ? 2.75 : 3));
        CHECK(std::isnan(read(&y[3], dtype)));
      }
    }
  }
}

TEST_CASE("ties of float64 go to even, and what is next to them to its side", "[oracle]") {
  const Data x = floats(DType::float64, std::vector<double>{-1, 1, 1, -1});
  for (const double base :
       {1.0, 1 + 0x1p-52, -1.0, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074, 3 * 0x1p-1074}) {
    const int exponent = std::max(std::ilogb(base), -1022);
    // Half an ulp of base as weight, and a little more or less; half of the smallest number there is not.
    const double half = std::ldexp(1.0, exponent - 53);
    if (half == 0) continue;
    for (const double weight_value : {half, half * (1 + 0x1p-52), half * (1 - 0x1p-53)}) {
      CAPTURE(base, weight_value);
      check(x, {.formula = {.eps = 0}, .weight = true, .bias = true},
            doubles(std::vector(4, weight_value)), doubles(std::vector(4, base)));
    }
  }
}

TEST_CASE("eps on the standard deviation is exact where the root is a fraction, and where not",
          "[oracle]") {
  const DType dtype = GENERATE(DType::float16, DType::float32, DType::float64);
  for (const std::vector<double>& values : kRootRows) {
    for (const double eps : {0.0, 1.0, 0.5, 3.0, 1e-5, 0x1p-24, 0x1p-53}) {
      const Data x = floats(dtype, values);
      const std::int64_t ddof = values.size() == 4 ? 1 : 0;
      check(x, {.formula = {eps, lnorm::EpsOn::std, ddof}, .out = dtype}, x, x);
    }
  }
}

TEST_CASE("rows that are constant but for one last place come out right", "[oracle]") {
  const DType dtype = GENERATE(from_range(kFloats));
  const int length = GENERATE(3, 64, 1000);
  for (const double value : {1.0, -1000.0, 1e-7, 0.0}) {
    const Data x = constant_but_for_one(dtype, length, value);
    for (const double eps : {0.0, 1e-5, 1e-30}) {
      CAPTURE(value);
      check(x, {.formula = {.eps = eps}, .out = dtype}, x, x);
    }
  }
}

TEST_CASE("eps at the ends of its range leaves every result right", "[oracle]") {
  Random random(33);
  const DType dtype = GENERATE(DType::float32, DType::float64);
  const Data x = floats(dtype, kNormal, 65, random);
  for (const double eps : {std::numeric_limits<double>::max(), 1e300, 1e-300, 5e-324}) {
    for (const lnorm::EpsOn eps_on : {lnorm::EpsOn::variance, lnorm::EpsOn::std}) {
      check(x, {.formula = {.eps = eps, .eps_on = eps_on}, .out = dtype, .bias = true}, x,
            floats(DType::float64, kNormal, 65, random));
    }
  }
}

TEST_CASE("elements too small for low parts are right, whatever weight they get", "[oracle]") {
  const DType out = GENERATE(DType::float64, DType::float32, DType::float16);
  Random random(23);
  const auto power = [&](int least, int most) {
    return std::ldexp(1 + uniform(random) / 4,
                      least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1)));
  };
  for (int i = 0; i < 200; ++i) {
    Settings settings;
    settings.out = out;
    settings.weight = random() % 2 == 0;
    settings.formula.rms = true;
    settings.formula.eps = random() % 2 == 0 ? 1e-5 : 0;
    const Data tiny_and_large = doubles(
        std::vector{power(-1080, -990), -power(-1074, -960), power(0, 30), 0.0, power(-900, 300)});
    const double weight = power(-299, 299);
    check(tiny_and_large, settings, doubles({weight, weight, -weight, 1.0, 2.0}), tiny_and_large);

    settings.weight = true;
    settings.formula.rms = false;
    settings.formula.eps = power(890, 896);
    const double spread = power(-400, -398);
    const double scale = power(-232, -224);
    check(doubles({-spread, spread}), settings, doubles({scale, -scale}), tiny_and_large);
  }
}

// Without a mean an error is relative: zeros and the smallest elements tell if it is not.
TEST_CASE("RMS norm of zeros and tiny elements among others is right", "[oracle]") {
  const DType dtype = GENERATE(DType::float16, DType::bfloat16, DType::float32);
  const int length = GENERATE(1, 4, 9, 64, 300, 1500);
  Random random(24);
  const Recipe recipe{"zeros", [](Random& r, DType d, int, int) {
                        switch (r() % 4) {
                          case 0:
                            return r() % 2 == 0 ? 0.0 : -0.0;
                          case 1:
                            return smallest_positive(d) * std::round(9 * uniform(r));
                          default:
                            return normal(r);
                        }
                      }};
  const Data x = floats(dtype, recipe, length, random);
  const Data weight = floats(DType::float32, recipe, length, random);
  for (const DType out : {DType::float16, DType::bfloat16, DType::float32}) {
    for (const bool has_weight : {false, true}) {
      for (const bool has_bias : {false, true}) {
        Settings settings{.out = out, .weight = has_weight, .bias = has_bias};
        settings.formula.rms = true;
        check(x, settings, weight, x);
      }
    }
  }
}

TEST_CASE("results are right where they become subnormal, and where they overflow", "[oracle]") {
  const DType dtype = GENERATE(from_range(kFloats));
  Random random(21);
  const Data x = floats(dtype, kNormal, 300, random);
  const double least = smallest_positive(dtype);
  const double most = largest_finite(dtype);
  for (const double scale : {least, 3 * least, most, most / 2, most / 3}) {
    CAPTURE(scale);
    check(x, {.out = dtype, .weight = true}, doubles(std::vector(300, scale)), x);
  }
}

TEST_CASE("every float16 beside three partners is normalized right", "[oracle][long]") {
  // Rows of four: all finite x in turn, with partners that no rounding can tell from others.
  constexpr std::array kPartners{0.5, -1.25, 3.0};
  const DType out = GENERATE(DType::float16, DType::float32);
  std::vector<std::byte> bytes;
  std::vector<std::vector<Number>> rows;
  // Where that is slow, some of them.
  for (std::uint32_t bits = 0; bits < 0x10000; bits += support::kIsSlow ? 7 : 1) {
    const lnorm::Float16 half{static_cast<std::uint16_t>(bits)};
    if (!std::isfinite(to_double(half))) continue;
    std::vector<double> values{to_double(half)};
    values.insert(values.end(), kPartners.begin(), kPartners.end());
    const Data row = floats(DType::float16, values);
    std::copy(row.bytes.begin(), row.bytes.end(), std::back_inserter(bytes));
    rows.push_back(row.numbers);
  }
  std::vector<double> expected;
  for (const std::vector<Number>& row : rows) {
    const oracle::Row exact(row, {}, false, {}, Formula{});
    for (std::size_t i = 0; i < row.size(); ++i) expected.push_back(exact.y(i, out));
  }
  const std::size_t size = lnorm::item_size(out);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    CAPTURE(backend.name, lnorm::name(out));
    const std::vector<std::byte> y = normalized(
        backend, {bytes.data(), DType::float16, std::endian::native, std::ssize(rows), 4}, out);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!same_number(read(y.data() + i * size, out), expected[i])) ++wrong;
    }
    CHECK(wrong == 0);
  }
}
