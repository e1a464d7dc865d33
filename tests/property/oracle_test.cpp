// Both kernels against exact arithmetic, to the bounds that kernel/layer_norm.hpp promises.

#include "support/oracle.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lnorm/kernel/layer_norm.hpp"
#include "support/catch.hpp"

namespace {

using lnorm::DType;
using lnorm::Formula;
using oracle::Exact;
using oracle::Number;

using Random = std::mt19937_64;

double uniform(Random& random) { return std::uniform_real_distribution<double>(-1, 1)(random); }
double normal(Random& random) { return std::normal_distribution<double>()(random); }

double largest_finite(DType dtype) {
  if (dtype == DType::float16) return 65504;
  if (dtype == DType::float32) return std::numeric_limits<float>::max();
  return std::numeric_limits<double>::max();
}

double smallest_positive(DType dtype) {
  if (dtype == DType::float16) return 0x1p-24;
  if (dtype == DType::float32) return std::numeric_limits<float>::denorm_min();
  return std::numeric_limits<double>::denorm_min();
}

// What a row of floats is made of; the values are rounded to the dtype afterwards.
struct Recipe {
  std::string name;
  std::function<double(Random&, DType, int index, int length)> element;
};

const std::vector<Recipe>& float_recipes() {
  static const std::vector<Recipe> recipes{
      {"normal", [](Random& r, DType, int, int) { return normal(r); }},
      {"uniform 1e-3", [](Random& r, DType, int, int) { return 1e-3 * uniform(r); }},
      {"large mean, small deviation",
       [](Random& r, DType d, int, int) {
         return (d == DType::float16 ? 1e3 : d == DType::float32 ? 1e4 : 1e8) + normal(r);
       }},
      {"mean in the last places",
       [](Random& r, DType, int, int) { return 1 + 0x1p-22 * normal(r); }},
      {"1e30", [](Random& r, DType, int, int) { return 1e30 * uniform(r); }},
      {"near the largest",
       [](Random& r, DType d, int, int) { return largest_finite(d) * uniform(r); }},
      {"at the largest",
       [](Random&, DType d, int i, int) { return largest_finite(d) * (i % 3 == 0 ? -1 : 1); }},
      {"subnormal", [](Random& r, DType d, int,
                       int) { return smallest_positive(d) * std::round(500 * uniform(r)); }},
      {"from subnormal to the largest",
       [](Random& r, DType d, int, int) {
         const double exponent = (uniform(r) + 1) / 2;
         return std::pow(smallest_positive(d), exponent) *
                std::pow(largest_finite(d), 1 - exponent) * (uniform(r) < 0 ? -1 : 1);
       }},
      {"constant", [](Random&, DType, int, int) { return 0.1; }},
      {"constant zero", [](Random&, DType, int, int) { return 0.0; }},
      {"all but one constant",
       [](Random&, DType, int i, int n) { return i == n / 2 ? 0.25 : 0.1; }},
      {"one outlier", [](Random& r, DType, int i, int) { return i == 0 ? 1e4 : normal(r); }},
      {"alternating signs", [](Random&, DType, int i, int) { return i % 2 == 0 ? 3.0 : -3.0; }},
      {"alternating about a mean",
       [](Random&, DType, int i, int) { return i % 2 == 0 ? 1025 : 1023; }},
      {"rising", [](Random&, DType, int i, int) { return 0.37 * i; }},
  };
  return recipes;
}

// A row in the bytes of its dtype, and the same as exact numbers.
struct Data {
  DType dtype;
  std::vector<std::byte> bytes;
  std::vector<Number> numbers;
};

template <class T>
void append(Data& data, T element) {
  const auto bytes = std::as_bytes(std::span(&element, 1));
  data.bytes.insert(data.bytes.end(), bytes.begin(), bytes.end());
  if constexpr (std::is_same_v<T, lnorm::Float16>) {
    data.numbers.push_back({lnorm::to_double(element), 0, false});
  } else if constexpr (std::is_floating_point_v<T>) {
    data.numbers.push_back({static_cast<double>(element), 0, false});
  } else {
    data.numbers.push_back({0, element, true});
  }
}

Data floats(DType dtype, const Recipe& recipe, int length, Random& random) {
  Data data{dtype, {}, {}};
  for (int i = 0; i < length; ++i) {
    double value = recipe.element(random, dtype, i, length);
    value = std::clamp(value, -largest_finite(dtype), largest_finite(dtype));
    if (dtype == DType::float16) {
      append(data, lnorm::to_float16(value));
    } else if (dtype == DType::float32) {
      append(data, static_cast<float>(value));
    } else {
      append(data, value);
    }
  }
  return data;
}

Data integers(DType dtype, int length, int spread_bits, Random& random) {
  Data data{dtype, {}, {}};
  const auto base = random();
  for (int i = 0; i < length; ++i) {
    const std::uint64_t value = base + (random() >> (64 - spread_bits));
    lnorm::visit(dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_same_v<T, bool>) {
        append(data, (value & 1) != 0);
      } else if constexpr (std::is_integral_v<T>) {
        append(data, static_cast<T>(value));
      }
    });
  }
  return data;
}

struct Settings {
  Formula formula;
  DType out = DType::float64;
  bool weight = false;
  bool bias = false;
  bool plus_one = false;
};

double read(const std::byte* from, DType dtype) {
  if (dtype == DType::float16) {
    lnorm::Float16 value;
    std::memcpy(&value, from, sizeof value);
    return lnorm::to_double(value);
  }
  if (dtype == DType::float32) {
    float value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  double value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

lnorm::AffineTerm term(const Data& data, bool plus_one) {
  const auto length = static_cast<std::int64_t>(data.numbers.size());
  return {lnorm::TensorInfo{"term", data.dtype, {length}}, data.bytes, plus_one};
}

bool is_narrow(DType in, DType out) {
  return in != DType::float64 && in != DType::int64 && in != DType::uint64 && out != DType::float64;
}

// Runs every kernel on the row and holds each result against the exact one.
void check(const Data& x, const Settings& settings, const Data& weight, const Data& bias) {
  const auto length = static_cast<std::int64_t>(x.numbers.size());
  lnorm::Affine affine;
  if (settings.weight) affine.weight = term(weight, settings.plus_one);
  if (settings.bias) affine.bias = term(bias, false);
  const auto none = std::span<const Number>{};
  const oracle::Row expected = oracle::layer_norm(
      x.numbers, settings.weight ? std::span(weight.numbers) : none, settings.plus_one,
      settings.bias ? std::span(bias.numbers) : none, settings.formula);
  const std::size_t size = lnorm::item_size(settings.out);
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    CAPTURE(kernel.name);
    std::vector<std::byte> out(static_cast<std::size_t>(length) * size);
    double mean = -1;
    double rstd = -1;
    kernel.layer_norm({x.bytes.data(), x.dtype, std::endian::native, 1, length},
                      {out.data(), settings.out}, affine, settings.formula, {&mean, &rstd});
    if (!expected.defined || !expected.finite) {
      for (std::size_t i = 0; i < x.numbers.size(); ++i) {
        if (!std::isnan(read(out.data() + i * size, settings.out))) FAIL("not NaN at " << i);
      }
      CHECK(std::isnan(rstd));
      continue;
    }
    CHECK(oracle::ulp_distance(mean, expected.mean, DType::float64) <= 0.501);
    CHECK(oracle::ulp_distance(rstd, expected.rstd, DType::float64) <= 0.501);
    const bool exact = kernel.name == "reference" || !is_narrow(x.dtype, settings.out);
    double worst = 0;
    for (std::size_t i = 0; i < x.numbers.size(); ++i) {
      const double actual = read(out.data() + i * size, settings.out);
      const Exact& wanted = expected.y[i];
      double distance = oracle::ulp_distance(actual, wanted, settings.out);
      if (distance > 0.501 && std::isfinite(actual)) {
        const Exact allowance =
            exact ? ldexp(expected.terms[i], -96) : ldexp(expected.largest, -48);
        const Exact off = abs(Exact(actual) - wanted) - allowance;
        distance = static_cast<double>(Exact(off / oracle::ulp(wanted, settings.out)));
      }
      worst = std::max(worst, distance);
      if (distance > 0.501) {
        FAIL("element " << i << " of " << length << " is " << actual << ", exact " << wanted.str(25)
                        << ", off by " << distance << " ulp");
      }
    }
    CHECK(worst <= 0.501);
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
  return settings;
}

std::string describe(const Settings& s) {
  std::ostringstream out;
  out << "--dtype " << lnorm::name(s.out) << " --eps " << s.formula.eps << " --eps-on "
      << (s.formula.eps_on == lnorm::EpsOn::std ? "std" : "variance") << " --ddof "
      << s.formula.ddof << (s.formula.rms ? " --rms" : "") << (s.weight ? " --weight" : "")
      << (s.plus_one ? " --zero-centered-weight" : "") << (s.bias ? " --bias" : "");
  return out.str();
}

const Recipe kNormal{"normal", [](Random& r, DType, int, int) { return normal(r); }};

constexpr std::array kFloats{DType::float16, DType::float32, DType::float64};

}  // namespace

TEST_CASE("every kernel is within 0.501 ulp of exact on floats", "[oracle]") {
  const int length = GENERATE(1, 2, 3, 7, 17, 31, 32, 33, 768, 1025);
  for (const DType in : kFloats) {
    for (const Recipe& recipe : float_recipes()) {
      Random random(static_cast<std::uint64_t>(length) * 7919 + static_cast<std::uint64_t>(in));
      for (const DType out : kFloats) {
        const Settings settings = random_settings(random, out, length);
        INFO(recipe.name << ", " << lnorm::name(in) << " x " << length << ", "
                         << describe(settings));
        const Data x = floats(in, recipe, length, random);
        const DType affine_dtype = kFloats[random() % 3];
        check(x, settings, floats(affine_dtype, kNormal, length, random),
              floats(affine_dtype, kNormal, length, random));
      }
    }
  }
}

TEST_CASE("every kernel is within 0.501 ulp of exact on integers", "[oracle]") {
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

TEST_CASE("a row of a million elements is as exact as a short one", "[oracle]") {
  constexpr int kLength = 1'000'003;
  const DType dtype = GENERATE(DType::float16, DType::float32, DType::float64);
  const std::string name = GENERATE(as<std::string>{}, "large mean, small deviation", "constant",
                                    "rising", "all but one constant");
  Random random(17);
  for (const Recipe& recipe : float_recipes()) {
    if (recipe.name != name) continue;
    CAPTURE(name, lnorm::name(dtype));
    Settings settings;
    settings.out = dtype;
    settings.bias = true;
    settings.weight = name == "rising";
    settings.formula.ddof = name == "large mean, small deviation" ? 1 : 0;
    check(floats(dtype, recipe, kLength, random), settings, floats(dtype, kNormal, kLength, random),
          floats(dtype, kNormal, kLength, random));
  }
}

TEST_CASE("a constant row gives exactly the bias, whatever its length", "[oracle]") {
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
  lnorm::Affine affine;
  affine.bias = {lnorm::TensorInfo{"bias", DType::float64, {}}, bias.bytes, false};
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
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

TEST_CASE("a bias that cancels a whole row leaves a result that is still exact", "[oracle]") {
  Random random(5);
  for (const DType dtype : kFloats) {
    const Data x = floats(dtype, kNormal, 100, random);
    const oracle::Row y = oracle::layer_norm(x.numbers, {}, false, {}, Formula{});
    Data bias{dtype, {}, {}};
    for (const Exact& value : y.y) {
      const double minus = -static_cast<double>(value);
      if (dtype == DType::float16) append(bias, lnorm::to_float16(minus));
      if (dtype == DType::float32) append(bias, static_cast<float>(minus));
      if (dtype == DType::float64) append(bias, minus);
    }
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

TEST_CASE("a NaN or an infinity in a row makes all of that row NaN and no other", "[kernel]") {
  const double bad =
      GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
               -std::numeric_limits<double>::infinity());
  const bool rms = GENERATE(false, true);
  const auto out = GENERATE(DType::float32, DType::float64);
  for (const lnorm::Kernel& kernel : lnorm::kernels()) {
    CAPTURE(kernel.name, bad, rms);
    std::vector<float> x{1, 2, 3, 4, static_cast<float>(bad), 6, 7, 8, 10};
    std::vector<std::byte> y(9 * lnorm::item_size(out));
    double mean[3];
    double rstd[3];
    Formula formula;
    formula.rms = rms;
    kernel.layer_norm(
        {std::as_bytes(std::span(x)).data(), DType::float32, std::endian::native, 3, 3},
        {y.data(), out}, {}, formula, {mean, rstd});
    for (std::size_t i = 0; i < 9; ++i) {
      CHECK(std::isnan(read(y.data() + i * lnorm::item_size(out), out)) == (i / 3 == 1));
    }
    for (std::size_t r = 0; r < 3; ++r) {
      CHECK(std::isnan(rstd[r]) == (r == 1));
      CHECK(std::isnan(mean[r]) == (r == 1));
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
    auto swapped = x.bytes;
    for (std::size_t i = 0; i < swapped.size(); i += 4) {
      std::reverse(swapped.begin() + static_cast<std::ptrdiff_t>(i),
                   swapped.begin() + static_cast<std::ptrdiff_t>(i) + 4);
    }
    const auto other =
        std::endian::native == std::endian::little ? std::endian::big : std::endian::little;
    CHECK(run(swapped, other, 7) == all);
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
