// Both kernels against exact arithmetic, to the bounds that kernel/layer_norm.hpp promises.

#include "support/oracle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "lnorm/kernel/layer_norm.hpp"
#include "property/data.hpp"
#include "support/catch.hpp"

namespace {

using lnorm::DType;
using lnorm::Formula;
using oracle::Exact;
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
};

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
  std::vector<std::byte> checked;  // what the kernel before gave
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
    if (out == checked) continue;
    checked = out;
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

constexpr std::array kFloats{DType::float16, DType::bfloat16, DType::float32, DType::float64};

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
        const DType affine_dtype = kFloats[random() % kFloats.size()];
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

TEST_CASE("a row of a million elements is as exact as a short one", "[oracle][long]") {
  const DType dtype = GENERATE(DType::float16, DType::float32, DType::float64);
  const int length = dtype == DType::float32 ? 1'000'003 : 100'003;  // the oracle takes its time
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
    for (const Exact& value : y.y) append_rounded(bias, -static_cast<double>(value));
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
