// Results that are rounded on the way, step by step, against exact arithmetic: not one may differ.

#include <boost/multiprecision/cpp_int.hpp>

#include "lnorm/kernel/affine_steps.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "property/data.hpp"

namespace {

using namespace property;
using lnorm::DType;
using lnorm::Rounding;
using Rational = boost::multiprecision::cpp_rational;

constexpr std::array kRoundings{Rounding{.xhat = true}, Rounding{.product = true},
                                Rounding{.xhat = true, .product = true}};

double rounded(const Rational& value, DType dtype) {
  return oracle::rounded(oracle::Fraction{numerator(value), denominator(value), 0}, dtype);
}

// y * weight + bias, rounded once.
double step(double y, const Rational& weight, const Rational& bias, DType dtype) {
  if (std::isfinite(y)) return rounded(Rational(y) * weight + bias, dtype);
  return y * weight.sign();
}

struct Terms {
  Data weight;
  Data bias;
  bool has_weight = true;
  bool has_bias = true;
  bool plus_one = false;

  Rational weight_at(std::size_t i) const {
    if (!has_weight) return 1;
    return Rational(weight.numbers[i].value) + (plus_one ? 1 : 0);
  }
  Rational bias_at(std::size_t i) const { return has_bias ? bias.numbers[i].value : 0.0; }

  lnorm::Affine affine(const Rounding& rounding) const {
    return {has_weight ? term(weight, plus_one) : lnorm::AffineTerm(),
            has_bias ? term(bias) : lnorm::AffineTerm(), rounding};
  }
};

Terms random_terms(Random& random, int length) {
  const DType dtype = kFloats[random() % kFloats.size()];
  return {floats(dtype, kNormal, length, random), floats(dtype, kNormal, length, random),
          random() % 4 != 0, random() % 3 != 0, random() % 3 == 0};
}

// What the steps that follow make of element i.
double after_steps(double y, std::size_t i, const Terms& terms, const Rounding& rounding,
                   DType out) {
  const Rational weight = terms.weight_at(i);
  const Rational bias = terms.bias_at(i);
  if (rounding.product) {
    if (rounding.xhat && terms.has_weight) y = step(y, weight, 0, out);
    return terms.has_bias ? step(y, 1, bias, out) : y;
  }
  return terms.has_weight || terms.has_bias ? step(y, weight, bias, out) : y;
}

// What a row and the steps that follow give.
std::vector<double> expected_of(const oracle::Row& row, const Terms& terms,
                                const Rounding& rounding, DType out, std::size_t length) {
  std::vector<double> results;
  for (std::size_t i = 0; i < length; ++i) {
    const double y = row.is_finite() && row.is_defined() ? row.y(i, out) : kNan;
    results.push_back(after_steps(y, i, terms, rounding, out));
  }
  return results;
}

void check(const Data& x, const Terms& terms, const Rounding& rounding, DType out,
           const lnorm::Formula& formula) {
  const std::size_t length = x.numbers.size();
  const bool is_first = rounding.product && !rounding.xhat && terms.has_weight;
  const oracle::Row row(x.numbers,
                        is_first ? std::span(terms.weight.numbers) : std::span(x.numbers).first(0),
                        is_first && terms.plus_one, {}, formula);
  const std::vector<double> expected = expected_of(row, terms, rounding, out, length);
  check_kernels(x, {nullptr, out}, terms.affine(rounding), formula, expected, row);
}

std::string describe(const Terms& terms, const Rounding& rounding, DType out) {
  return std::string(rounding.xhat ? "xhat " : "") + (rounding.product ? "product " : "") +
         std::string(name(out)) + (terms.has_weight ? ", weight " : "") +
         std::string(name(terms.weight.dtype)) + (terms.plus_one ? " + 1" : "") +
         (terms.has_bias ? ", bias" : "");
}

}  // namespace

TEST_CASE("every step is correctly rounded by itself", "[rounding]") {
  const int length = GENERATE(1, 7, 33, 300, 1030);
  Random random(static_cast<std::uint64_t>(length));
  for (const DType in : kFloats) {
    for (const Recipe& recipe : float_recipes()) {
      if (length > 100 && recipe.name != "normal" && recipe.name != "one outlier") continue;
      for (const Rounding& rounding : kRoundings) {
        const DType out = random() % 2 == 0 ? in : kFloats[random() % kFloats.size()];
        const Terms terms = random_terms(random, length);
        lnorm::Formula formula;
        formula.rms = random() % 2 == 0;
        INFO(recipe.name << ", " << name(in) << ", " << describe(terms, rounding, out));
        check(floats(in, recipe, length, random), terms, rounding, out, formula);
      }
    }
  }
}

namespace {

// Holds steps of given elements against the exact ones, by every kernel.
void check_steps(const Data& y, const Terms& terms, const Rounding& rounding) {
  const std::size_t length = y.numbers.size();
  std::vector<double> expected;
  for (std::size_t i = 0; i < length; ++i) {
    expected.push_back(after_steps(y.numbers[i].value, i, terms, rounding, y.dtype));
  }
  const lnorm::Affine affine = terms.affine(rounding);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    INFO(backend.name << ": " << describe(terms, rounding, y.dtype));
    std::vector<std::byte> results = y.bytes;
    take_steps(backend, affine, {results.data(), y.dtype}, static_cast<std::int64_t>(length), 0);
    check_same(read_all(results, y.dtype), expected);
  }
}

}  // namespace

TEST_CASE("steps whose results lie halfway, or all but, go to the right side", "[rounding]") {
  constexpr int kLength = 200;
  Random random(7);
  for (const DType out : kFloats) {
    for (const DType weight_dtype : kFloats) {
      for (const DType bias_dtype : kFloats) {
        const Data y = floats(out, kNormal, kLength, random);
        Terms terms{floats(weight_dtype, kNormal, kLength, random), {bias_dtype, {}, {}}};
        const int precision = out == DType::float16 ? 11 : out == DType::bfloat16 ? 8 : 24;
        for (std::size_t i = 0; i < kLength; ++i) {
          // What is missing to a point halfway between two results, and a little more or less.
          const double product = y.numbers[i].value * terms.weight.numbers[i].value;
          const double near = product + uniform(random);
          const double ulp = std::ldexp(1.0, std::ilogb(near) - precision + 1);
          const double halfway = (std::floor(near / ulp) + 0.5) * ulp;
          const double tail = std::ldexp(uniform(random), -static_cast<int>(random() % 100));
          append_rounded(terms.bias, halfway - product + (random() % 2 == 0 ? 0 : tail * ulp));
        }
        for (const Rounding& rounding : kRoundings) check_steps(y, terms, rounding);
      }
    }
  }
}

TEST_CASE("steps at the ends of the range overflow, vanish and keep signs rightly", "[rounding]") {
  constexpr int kLength = 300;
  Random random(8);
  const Recipe ends{"ends", [](Random& r, DType d, int i, int) {
                      if (i % 7 == 0) return i % 2 == 0 ? 0.0 : -0.0;
                      const double sizes[]{largest_finite(d), 1, 100 * smallest_positive(d)};
                      return sizes[r() % 3] * uniform(r);
                    }};
  for (const DType out : kFloats) {
    for (const DType term_dtype : kFloats) {
      const Data y = floats(out, ends, kLength, random);
      const bool plus_one = random() % 2 == 0;
      const Terms terms{floats(term_dtype, ends, kLength, random),
                        floats(term_dtype, ends, kLength, random), true, true, plus_one};
      for (const Rounding& rounding : kRoundings) check_steps(y, terms, rounding);
      const Terms weight{terms.weight, terms.bias, true, false, plus_one};
      check_steps(y, weight, {.xhat = true});
    }
  }
}

TEST_CASE("a step multiplies and adds what is not finite by IEEE's rules", "[rounding]") {
  struct Case {
    double y, weight, bias, expected;
  };
  const std::array<Case, 7> cases{{{0, kInfinity, 1, kNan},
                                   {-2, kInfinity, 1, -kInfinity},
                                   {2, 3, -kInfinity, -kInfinity},
                                   {2, kNan, 1, kNan},
                                   {kNan, 1, 1, kNan},
                                   {2, kInfinity, -kInfinity, kNan},
                                   {-2, 3, 6, 0}}};
  for (const DType out : kFloats) {
    for (const auto& [y, weight, bias, expected] : cases) {
      // Beside them an element that is finite.
      const Data elements = floats(out, std::vector{y, 1.0});
      const Terms terms{floats(out, std::vector{weight, 2.0}), floats(out, std::vector{bias, 3.0})};
      for (const lnorm::Backend& backend : lnorm::backends()) {
        CAPTURE(backend.name, name(out), y, weight, bias);
        std::vector<std::byte> results = elements.bytes;
        take_steps(backend, terms.affine({.xhat = true}), {results.data(), out}, 2, 0);
        CHECK(same_number(read_all(results, out)[0], expected));
        CHECK(read_all(results, out)[1] == 5);
      }
    }
  }
}
