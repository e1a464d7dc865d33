// Every kernel against exact arithmetic: not one result may differ from the correctly rounded one.

#include "support/oracle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "lnorm/kernel/layer_norm.hpp"
#include "property/data.hpp"
#include "support/catch.hpp"
#include "support/pace.hpp"

namespace {

using lnorm::DType;
using lnorm::Formula;
using oracle::Number;
using property::append;
using property::append_rounded;
using property::Data;
using property::float_recipes;
using property::floats;
using property::integers;
using property::kNormal;
using property::largest_finite;
using property::Random;
using property::read;
using property::Recipe;
using property::smallest_positive;
using property::uniform;

struct Settings {
  Formula formula;
  DType out = DType::float64;
  bool weight = false;
  bool bias = false;
  bool plus_one = false;
  bool saturates = false;
  double scale = 1;
};

lnorm::AffineTerm term(const Data& data, bool plus_one) {
  const auto length = static_cast<std::int64_t>(data.numbers.size());
  return {lnorm::TensorInfo{"term", data.dtype, {length}}, data.bytes, plus_one};
}

// NaN is NaN; zeros have signs.
bool same_number(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// What is read of a result where it is written, with an infinity that stands for what is beyond the greatest number.
double stored(double y, const Settings& settings) {
  if (!std::isinf(y)) return y;
  if (settings.saturates) return std::copysign(largest_finite(settings.out), y);
  return settings.out == DType::float8_e4m3fn ? std::nan("") : y;
}

// Runs every kernel on the row and holds each result against the exact one.
void check(const Data& x, const Settings& settings, const Data& weight, const Data& bias) {
  const auto length = static_cast<std::int64_t>(x.numbers.size());
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
  const std::size_t size = lnorm::item_size(settings.out);
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    for (const bool with_stats : {false, true}) {
      if (kernel.passes == nullptr && length > 60'000) continue;  // takes as long as the oracle
      INFO(kernel.name << (with_stats ? ", with statistics" : ""));
      std::vector<std::byte> out(static_cast<std::size_t>(length) * size);
      double mean = -1;
      double rstd = -1;
      kernel.layer_norm(
          {x.bytes.data(), x.dtype, std::endian::native, 1, length},
          {.data = out.data(), .dtype = settings.out, .saturates = settings.saturates}, affine,
          settings.formula, with_stats ? lnorm::MeanAndRstd{&mean, &rstd} : lnorm::MeanAndRstd{});
      if (with_stats) {
        CHECK(same_number(mean, row.is_finite() ? row.mean() : std::nan("")));
        CHECK(same_number(rstd, has_numbers ? row.rstd() : std::nan("")));
      }
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double actual = read(out.data() + i * size, settings.out);
        if (same_number(actual, expected[i])) continue;
        FAIL("element " << i << " of " << length << " is " << actual << ", expected " << expected[i]
                        << ", off by " << oracle::ulp_distance(actual, row.y(i), settings.out)
                        << " ulp");
      }
    }
  }
}

Settings random_settings(Random& random, DType out, int length) {
  Settings settings;
  settings.out = out;
  constexpr std::array kEps{1e-5, 1e-5, 0.0, 1e-12, 1.0, 1e-300, 1e-320};
  settings.formula.eps = kEps[random() % kEps.size()];
  settings.formula.eps_on = random() % 4 == 0 ? lnorm::EpsOn::std : lnorm::EpsOn::variance;
  settings.formula.ddof = length > 1 ? static_cast<std::int64_t>(random() % 2) : 0;
  settings.formula.rms = random() % 5 == 0;
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

std::string describe(const Settings& s) {
  std::ostringstream out;
  out << "--dtype " << lnorm::name(s.out) << " --eps " << s.formula.eps << " --eps-on "
      << (s.formula.eps_on == lnorm::EpsOn::std ? "std" : "variance") << " --ddof "
      << s.formula.ddof << (s.formula.rms ? " --rms" : "") << (s.weight ? " --weight" : "")
      << (s.plus_one ? " --zero-centered-weight" : "") << (s.bias ? " --bias" : "")
      << " --output-scale " << s.scale << (s.saturates ? " --saturate" : "");
  return out.str();
}

constexpr std::array kFloats{DType::float16, DType::bfloat16, DType::float32, DType::float64};
constexpr std::array kFloat8s{DType::float8_e4m3fn, DType::float8_e5m2};

}  // namespace

TEST_CASE("every result of floats is correctly rounded", "[oracle]") {
  const int length = GENERATE(1, 2, 3, 7, 17, 31, 32, 33, 768, 1025);
  for (const DType in : kFloats) {
    for (const Recipe& recipe : float_recipes()) {
      Random random(static_cast<std::uint64_t>(length) * 7919 + static_cast<std::uint64_t>(in));
      for (const DType out : kFloats) {
        const Settings settings = random_settings(random, out, length);
        INFO(recipe.name << ", " << lnorm::name(in) << " x " << length << ", "
                         << describe(settings));
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
  for (const Recipe& recipe : float_recipes()) {
    Random random(static_cast<std::uint64_t>(length) * 131 + static_cast<std::uint64_t>(in));
    for (const DType out : kFloat8s) {
      const Settings settings = random_settings(random, out, length);
      INFO(recipe.name << ", " << lnorm::name(in) << " x " << length << ", " << describe(settings));
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
      INFO(lnorm::name(float8) << ", " << describe(settings));
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
  const DType in = GENERATE(DType::boolean, DType::int8, DType::int16, DType::int32, DType::int64,
                            DType::uint8, DType::uint16, DType::uint32, DType::uint64);
  for (const int length : {1, 2, 5, 17, 300}) {
    for (const int spread_bits : {1, 5, 17, 40, 64}) {
      for (const DType out : kFloats) {
        Random random(static_cast<std::uint64_t>(length * 1000 + spread_bits));
        const Settings settings = random_settings(random, out, length);
        INFO(lnorm::name(in) << " x " << length << ", " << spread_bits << " bits, "
                             << describe(settings));
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
  const int length = support::share(is_longest ? 1'000'003 : 50'003);
  Random random(17);
  for (const Recipe& recipe : float_recipes()) {
    if (recipe.name != name) continue;
    CAPTURE(name, lnorm::name(dtype));
    Settings settings;
    settings.out = dtype;
    settings.bias = true;
    settings.weight = name == "rising";
    settings.formula.ddof = name == "large mean, small deviation" ? 1 : 0;
    check(floats(dtype, recipe, length, random), settings, floats(dtype, kNormal, length, random),
          floats(dtype, kNormal, length, random));
  }
}

TEST_CASE("a constant row gives exactly the bias, whatever its length", "[oracle][long]") {
  const int length = GENERATE(1, 2, 3, 10, 33, 1000, 4097, 1'000'003);
  const DType dtype = GENERATE(DType::float16, DType::float32, DType::float64);
  const double value = GENERATE(0.1, -1e30, 3e-40, -0.0);
  const Recipe constant{"constant", [&](Random&, DType, int, int) { return value; }};
  Random random(1);
  const Data x = floats(dtype, constant, length, random);
  const std::size_t size = lnorm::item_size(dtype);
  const auto zeros = std::vector<std::byte>(static_cast<std::size_t>(length) * size);
  const double bias_value = 0.25;
  Data bias{DType::float64, {}, {}};
  append(bias, bias_value);
  const lnorm::Affine affine({},
                             {lnorm::TensorInfo{"bias", DType::float64, {}}, bias.bytes, false});
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    if (kernel.passes == nullptr && length > 5000) continue;  // takes its time
    CAPTURE(kernel.name, value, lnorm::name(dtype), length);
    const auto run = [&](const Formula& formula, const lnorm::Affine& with) {
      std::vector<std::byte> y(zeros.size());
      kernel.layer_norm({x.bytes.data(), dtype, std::endian::native, 1, length}, {y.data(), dtype},
                        with, formula, {});
      return y;
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
    Settings settings;
    settings.out = dtype;
    settings.bias = true;
    CAPTURE(lnorm::name(dtype));
    check(x, settings, bias, bias);
  }
}

TEST_CASE("weights and biases at the ends of the range stay exact or overflow rightly",
          "[oracle]") {
  Random random(6);
  const Recipe ends{"ends", [](Random& r, DType d, int, int) {
                      return r() % 2 == 0 ? largest_finite(d) * uniform(r)
                                          : 100 * smallest_positive(d) * uniform(r);
                    }};
  for (const DType in : kFloats) {
    for (const DType affine_dtype : kFloats) {
      Settings settings;
      settings.out = in;
      settings.weight = true;
      settings.bias = true;
      CAPTURE(lnorm::name(in), lnorm::name(affine_dtype));
      const Data x = floats(in, kNormal, 64, random);
      check(x, settings, floats(affine_dtype, ends, 64, random),
            floats(affine_dtype, ends, 64, random));
    }
  }
}

TEST_CASE("rows come out the same however they are grouped, whatever the byte order", "[kernel]") {
  Random random(3);
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    CAPTURE(kernel.name);
    const Data x = floats(DType::float32, kNormal, 7 * 45, random);
    const auto run = [&](const std::vector<std::byte>& bytes, std::endian order,
                         std::int64_t rows_a_call) {
      std::vector<std::byte> y(x.bytes.size());
      for (std::int64_t r = 0; r < 7; r += rows_a_call) {
        const std::int64_t rows = std::min<std::int64_t>(rows_a_call, 7 - r);
        kernel.layer_norm({bytes.data() + r * 45 * 4, DType::float32, order, rows, 45},
                          {y.data() + r * 45 * 4, DType::float32}, {}, Formula{}, {});
      }
      return y;
    };
    const auto all = run(x.bytes, std::endian::native, 7);
    CHECK(run(x.bytes, std::endian::native, 1) == all);
    CHECK(run(x.bytes, std::endian::native, 2) == all);
    CHECK(run(property::swapped(x.bytes, x.dtype), property::kOtherByteOrder, 7) == all);
  }
}

TEST_CASE("rows of one element have the bias, or NaN where they have no number", "[kernel]") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values(1500, 3);
  values[0] = values[1100] = kNan;
  values[2] = -std::numeric_limits<double>::infinity();
  const auto n = static_cast<std::int64_t>(values.size());
  const Data half = floats(DType::float64, std::vector{0.5});
  const lnorm::Affine affine({}, lnorm::AffineTerm({"bias", half.dtype, {}}, half.bytes, false));
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    for (const DType dtype : kFloats) {
      for (const double eps : {1e-5, 0.0}) {
        CAPTURE(kernel.name, lnorm::name(dtype), eps);
        const Data x = floats(dtype, values);
        std::vector<std::byte> y(x.bytes.size());
        kernel.layer_norm({x.bytes.data(), dtype, std::endian::native, n, 1}, {y.data(), dtype},
                          affine, {.eps = eps}, {});
        const std::vector<double> actual = property::read_all(y, dtype);
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
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    std::vector<std::byte> with(x.bytes.size());
    std::vector<std::byte> without(x.bytes.size());
    double mean[64];
    double rstd[64];
    const lnorm::RowsIn rows{x.bytes.data(), DType::float32, std::endian::native, 64, 64};
    kernel.layer_norm(rows, {with.data(), DType::float32}, {}, Formula{}, {mean, rstd});
    kernel.layer_norm(rows, {without.data(), DType::float32}, {}, Formula{}, {});
    CHECK(with == without);
  }
}

namespace {

// A float64 parameter, high + low * 2^-n, that float64 may or may not hold.
double with_tail(double value, int tail_exponent, int sign) {
  return value + sign * std::ldexp(1.0, tail_exponent);
}

// Halfway between two numbers of dtype near 1, and near the ends of its range.
std::vector<double> ties(DType dtype) {
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
  const Recipe signs{"signs", [](Random&, DType, int i, int) { return i % 2 == 0 ? -1.0 : 1.0; }};
  Random random(9);
  const Data x = floats(dtype, signs, length, random);
  for (const double tie : ties(dtype)) {
    // In the bias, where a tiny weight decides the side.
    for (const double tail : {0.0, 0x1p-46, 0x1p-100, 0x1p-300, -0x1p-46, -0x1p-300}) {
      Settings settings;
      settings.out = dtype;
      settings.formula.eps = 0;
      settings.weight = settings.bias = true;
      Data weight{DType::float64, {}, {}};
      Data bias{DType::float64, {}, {}};
      for (int i = 0; i < length; ++i) {
        append_rounded(weight, tail * std::fabs(tie));
        append_rounded(bias, tie);
      }
      CAPTURE(lnorm::name(dtype), length, tie, tail);
      check(x, settings, weight, bias);
    }
    // In the weight: halfway, and a last place of float64 to either side.
    for (const int side : {-1, 0, 1}) {
      Settings settings;
      settings.out = dtype;
      settings.formula.eps = 0;
      settings.weight = true;
      Data weight{DType::float64, {}, {}};
      for (int i = 0; i < length; ++i) {
        append_rounded(weight, with_tail(tie, std::ilogb(tie) - 52, side));
      }
      CAPTURE(lnorm::name(dtype), length, tie, side);
      check(x, settings, weight, weight);
    }
  }
}

TEST_CASE("ties of float8 are seen behind a scale", "[oracle][float8]") {
  const DType dtype = GENERATE(from_range(kFloat8s));
  const bool saturates = GENERATE(false, true);
  const Data x = floats(DType::float32, std::vector<double>{-1, 1, 1, -1});
  for (const double tie : ties(dtype)) {
    for (const double scale : {1.0, 1024.0, -0.5, 0x1p-900, 0x1p900}) {
      for (const double tail : {0.0, 0x1p-40, -0x1p-40, 0x1p-110}) {
        Settings settings;
        settings.out = dtype;
        settings.formula.eps = 0;
        settings.weight = settings.bias = true;
        settings.scale = scale;
        settings.saturates = saturates;
        CAPTURE(lnorm::name(dtype), tie, scale, tail, saturates);
        check(x, settings, floats(DType::float64, std::vector<double>(4, tail * tie / scale)),
              floats(DType::float64, std::vector<double>(4, tie / scale)));
      }
    }
  }
}

TEST_CASE("infinite weights and biases saturate, and NaN does not", "[oracle][float8]") {
  const double infinity = std::numeric_limits<double>::infinity();
  const Data x = floats(DType::float32, std::vector<double>{-1, 0, 1, 0});
  const Data weight =
      floats(DType::float32, std::vector<double>{infinity, infinity, 1, std::nan("")});
  const lnorm::Affine affine(term(weight, false), {}, 2);
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    for (const DType dtype : kFloat8s) {
      for (const bool saturates : {false, true}) {
        CAPTURE(kernel.name, lnorm::name(dtype), saturates);
        std::array<std::byte, 4> y{};
        kernel.layer_norm({x.bytes.data(), x.dtype, std::endian::native, 1, 4},
                          {.data = y.data(), .dtype = dtype, .saturates = saturates}, affine, {},
                          {});
        const double first = read(&y[0], dtype);
        if (saturates) {
          CHECK(first == -largest_finite(dtype));
        } else {
          CHECK((dtype == DType::float8_e5m2 ? first == -infinity : std::isnan(first)));
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
      Settings settings;
      settings.formula.eps = 0;
      settings.weight = settings.bias = true;
      CAPTURE(base, weight_value);
      check(x, settings, floats(DType::float64, std::vector<double>(4, weight_value)),
            floats(DType::float64, std::vector<double>(4, base)));
    }
  }
}

TEST_CASE("eps on the standard deviation is exact where the root is a fraction, and where not",
          "[oracle]") {
  const DType dtype = GENERATE(DType::float16, DType::float32, DType::float64);
  const std::vector<std::vector<double>> rows{{-1, 1},      {0, 2, 0, 2}, {-3, 3, -3, 3, 3, -3},
                                              {1, 2, 3, 4}, {0, 0, 1},    {1, 1, 1, 5}};
  for (const std::vector<double>& values : rows) {
    for (const double eps : {0.0, 1.0, 0.5, 3.0, 1e-5, 0x1p-24, 0x1p-53}) {
      Settings settings;
      settings.out = dtype;
      settings.formula.eps = eps;
      settings.formula.eps_on = lnorm::EpsOn::std;
      settings.formula.ddof = values.size() == 4 ? 1 : 0;
      CAPTURE(lnorm::name(dtype), values.size(), eps);
      const Data x = floats(dtype, values);
      check(x, settings, x, x);
    }
  }
}

TEST_CASE("rows that are constant but for one last place come out right", "[oracle]") {
  const DType dtype = GENERATE(DType::float16, DType::bfloat16, DType::float32, DType::float64);
  const int length = GENERATE(3, 64, 1000);
  for (const double value : {1.0, -1000.0, 1e-7, 0.0}) {
    std::vector<double> values(static_cast<std::size_t>(length), value);
    const double step = dtype == DType::float64    ? 0x1p-52
                        : dtype == DType::float32  ? 0x1p-23
                        : dtype == DType::bfloat16 ? 0x1p-7
                                                   : 0x1p-10;
    values[values.size() / 2] = value == 0 ? smallest_positive(dtype) : value * (1 + step);
    for (const double eps : {0.0, 1e-5, 1e-30}) {
      Settings settings;
      settings.out = dtype;
      settings.formula.eps = eps;
      CAPTURE(lnorm::name(dtype), length, value, eps);
      const Data x = floats(dtype, values);
      check(x, settings, x, x);
    }
  }
}

TEST_CASE("eps at the ends of its range leaves every result right", "[oracle]") {
  Random random(33);
  const DType dtype = GENERATE(DType::float32, DType::float64);
  const Data x = floats(dtype, kNormal, 65, random);
  for (const double eps : {std::numeric_limits<double>::max(), 1e300, 1e-300, 5e-324}) {
    for (const lnorm::EpsOn eps_on : {lnorm::EpsOn::variance, lnorm::EpsOn::std}) {
      Settings settings;
      settings.out = dtype;
      settings.formula.eps = eps;
      settings.formula.eps_on = eps_on;
      settings.bias = true;
      CAPTURE(lnorm::name(dtype), eps, eps_on == lnorm::EpsOn::std);
      check(x, settings, x, floats(DType::float64, kNormal, 65, random));
    }
  }
}

TEST_CASE("elements too small for low parts are right, whatever weight they get", "[oracle]") {
  const DType out = GENERATE(DType::float64, DType::float32, DType::float16);
  Random random(23);
  const auto doubles = [](const std::vector<double>& values) {
    return floats(DType::float64, values);
  };
  const auto power = [&](int least, int most) {
    return std::ldexp(1 + property::uniform(random) / 4,
                      least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1)));
  };
  for (int i = 0; i < 200; ++i) {
    Settings settings;
    settings.out = out;
    settings.weight = random() % 2 == 0;
    settings.formula.rms = true;
    settings.formula.eps = random() % 2 == 0 ? 1e-5 : 0;
    const Data tiny_and_large =
        doubles({power(-1080, -990), -power(-1074, -960), power(0, 30), 0, power(-900, 300)});
    const double weight = power(-299, 299);
    check(tiny_and_large, settings, doubles({weight, weight, -weight, 1, 2}), tiny_and_large);

    settings.weight = true;
    settings.formula.rms = false;
    settings.formula.eps = power(890, 896);
    const double spread = power(-400, -398);
    const double scale = power(-232, -224);
    check(doubles({-spread, spread}), settings, doubles({scale, -scale}), tiny_and_large);
  }
}

TEST_CASE("results are right where they become subnormal, and where they overflow", "[oracle]") {
  const DType dtype = GENERATE(DType::float16, DType::bfloat16, DType::float32, DType::float64);
  Random random(21);
  const Data x = floats(dtype, kNormal, 300, random);
  const double least = smallest_positive(dtype);
  const double most = largest_finite(dtype);
  for (const double scale : {least, 3 * least, most, most / 2, most / 3}) {
    Settings settings;
    settings.out = dtype;
    settings.weight = true;
    CAPTURE(lnorm::name(dtype), scale);
    check(x, settings, floats(DType::float64, std::vector<double>(300, scale)), x);
  }
}

TEST_CASE("every float16 beside three partners is normalized right", "[oracle][long]") {
  // Rows of four: all finite x in turn, with partners that no rounding can tell from others.
  constexpr std::array kPartners{0.5, -1.25, 3.0};
  const DType out = GENERATE(DType::float16, DType::float32);
  std::vector<std::byte> bytes;
  std::vector<std::vector<Number>> rows;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
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
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    CAPTURE(kernel.name, lnorm::name(out));
    std::vector<std::byte> y(expected.size() * size);
    kernel.layer_norm({bytes.data(), DType::float16, std::endian::native,
                       static_cast<std::int64_t>(rows.size()), 4},
                      {y.data(), out}, {}, Formula{}, {});
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!same_number(read(y.data() + i * size, out), expected[i])) ++wrong;
    }
    CHECK(wrong == 0);
  }
}
