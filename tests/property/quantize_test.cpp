// Scales and quantized results, against fractions: a scale by the largest of all bounds, not of rounded quotients.

#include "lnorm/kernel/quantize.hpp"

#include "property/data.hpp"
#include "support/pace.hpp"

namespace {

using namespace property;
using lnorm::DType;
using lnorm::Quantization;
using oracle::Fraction;

// y of every element between two bounds, as exact as is asked for.
using Bounds = std::function<Fraction(std::size_t i, int which, std::int64_t bits)>;

Fraction number(double value) { return oracle::fraction({value}); }
Fraction size_of(const Fraction& f) {
  return f.numerator < 0 ? Fraction{-f.numerator, f.denominator, f.exponent} : f;
}
bool is_less(const Fraction& a, const Fraction& b) { return (a - b).numerator < 0; }

// What the scale of some elements is.
double scale_of(const Bounds& y, std::size_t first, std::size_t count, const Quantization& q) {
  return oracle::decided([&](int which, std::int64_t bits) {
    Fraction amax;
    for (std::size_t i = first; i < first + count; ++i) {
      const Fraction one = size_of(y(i, 0, bits));
      const Fraction other = size_of(y(i, 1, bits));
      const Fraction& size = is_less(one, other) == (which == 0) ? one : other;
      if (is_less(amax, size)) amax = size;
    }
    if (is_less(amax, number(q.amax_min))) amax = number(q.amax_min);
    if (std::isfinite(q.amax_max) && is_less(number(q.amax_max), amax)) amax = number(q.amax_max);
    double scale = oracle::rounded(amax / number(q.qmax), DType::float32);
    if (amax.numerator == 0) scale = q.scale_min > 0 ? q.scale_min : 1;
    scale = std::min(std::max(scale, q.scale_min), q.scale_max);
    scale = std::max(scale, 0x1p-149);
    if (q.power_of_two && std::isfinite(scale)) scale = std::exp2(std::ceil(std::log2(scale)));
    return scale;
  });
}

double quantized(const Bounds& y, std::size_t i, double scale, DType dtype) {
  if (std::isinf(scale)) return 0;
  const double q = oracle::decided([&](int which, std::int64_t bits) {
    return oracle::rounded(y(i, which, bits) / number(scale), dtype);
  });
  const double most = dtype == DType::int8 ? 127 : lnorm::default_qmax(dtype);
  return std::clamp(q, dtype == DType::int8 ? -128 : -most, most);
}

constexpr std::array kQuantized{DType::int8, DType::float8_e4m3fn, DType::float8_e5m2,
                                DType::float8_e4m3fnuz};

Quantization any_quantization(Random& random, std::int64_t length) {
  Quantization q;
  q.dtype = kQuantized[random() % kQuantized.size()];
  q.qmax = random() % 3 == 0 ? 1 + 300 * std::fabs(uniform(random)) : lnorm::default_qmax(q.dtype);
  if (random() % 3 == 0) {
    for (std::int64_t group = 1; group < length; ++group) {
      if (length % group == 0) q.group = group;
      if (random() % 3 == 0 && q.group > 0) break;
    }
  }
  if (random() % 4 == 0) q.amax_min = std::exp2(8 * uniform(random));
  if (random() % 4 == 0) q.amax_max = std::exp2(9 + 8 * uniform(random));
  if (random() % 4 == 0) q.scale_min = static_cast<float>(std::exp2(-9 + 4 * uniform(random)));
  if (random() % 4 == 0) q.scale_max = static_cast<float>(std::exp2(2 + 4 * uniform(random)));
  q.power_of_two = random() % 4 == 0;
  q.rounds_y = random() % 4 == 0;
  q.rounding = kFloats[random() % 3];
  return q;
}

// What a float8 that has no -0 makes of one.
double as_stored(double q, DType dtype) {
  return dtype == DType::int8 || dtype == DType::float8_e4m3fnuz ? q + 0.0 : q;
}

}  // namespace

TEST_CASE("scales and what is divided by them are rounded once each") {
  Random random(57);
  const auto& recipes = float_recipes();
  for (int c = 0; c < support::share(8000, 4); ++c) {
    const int length = 1 + static_cast<int>(random() % 40);
    const DType in = kFloats[random() % kFloats.size()];
    const Recipe& recipe = random() % 2 == 0 ? kNormal : recipes[random() % recipes.size()];
    const Data x = floats(in, recipe, length, random);
    const auto any_term = [&](bool is_there) {
      return is_there ? floats(kFloats[random() % kFloats.size()], kNormal, length, random)
                      : Data{DType::float32, {}, {}};
    };
    const Data weight = any_term(random() % 2 == 0);
    const Data bias = any_term(random() % 2 == 0);
    const lnorm::Formula formula = any_formula(random, length);
    const Quantization q = any_quantization(random, length);
    const lnorm::Rounding rounding{random() % 4 == 0, random() % 4 == 0};
    CAPTURE(c, length, name(in), recipe.name, name(q.dtype), q.group, q.qmax, q.rounds_y,
            rounding.xhat, rounding.product);

    const bool has_steps = (rounding.xhat && (!weight.numbers.empty() || !bias.numbers.empty())) ||
                           (rounding.product && !bias.numbers.empty());
    const oracle::Row row(x.numbers, weight.numbers, false, bias.numbers, formula);
    const oracle::Row plain(x.numbers, {}, false, {}, formula);
    if (!row.is_finite()) continue;
    const auto of = [](const Data& data, std::size_t i, double otherwise) {
      return data.numbers.empty() ? number(otherwise) : oracle::fraction(data.numbers[i]);
    };
    bool overflows = false;  // on the way
    const auto rounded = [&](double value) {
      overflows = overflows || std::isinf(value);
      return number(std::isinf(value) ? 0 : value);
    };
    std::vector<Fraction> exact;  // where a step is rounded
    if (row.is_defined() && (has_steps || q.rounds_y)) {
      for (std::size_t i = 0; i < x.numbers.size(); ++i) {
        const auto of_row = [&](const oracle::Row& any) { return rounded(any.y(i, q.rounding)); };
        Fraction y;
        if (!has_steps) {
          y = of_row(row);
        } else {
          const oracle::Row without_bias(x.numbers, weight.numbers, false, {}, formula);
          if (rounding.xhat) {
            y = of_row(plain) * of(weight, i, 1);
            if (rounding.product && !bias.numbers.empty()) {
              y = rounded(oracle::rounded(y, q.rounding));
            }
          } else {
            y = of_row(without_bias);
          }
          y = y + of(bias, i, 0);
          if (q.rounds_y) y = rounded(oracle::rounded(y, q.rounding));
        }
        exact.push_back(y);
      }
    }
    if (overflows) continue;
    const Bounds y = [&](std::size_t i, int which, std::int64_t bits) {
      return exact.empty() ? row.bound_of_y(i, which, bits) : exact[i];
    };

    const auto groups = static_cast<std::size_t>(q.scales(length));
    const std::size_t count = static_cast<std::size_t>(length) / groups;
    std::vector<double> scales(groups, kNan);
    std::vector<double> expected(x.numbers.size(), q.dtype == DType::int8 ? 0 : kNan);
    for (std::size_t g = 0; g < groups && row.is_defined(); ++g) {
      scales[g] = scale_of(y, g * count, count, q);
      for (std::size_t i = g * count; i < (g + 1) * count; ++i) {
        expected[i] = as_stored(quantized(y, i, scales[g], q.dtype), q.dtype);
      }
    }
    const lnorm::Affine affine(term(weight), term(bias), rounding);
    for (const lnorm::Backend& backend : lnorm::backends()) {
      CAPTURE(backend.name);
      const lnorm::RowQuantizer quantizer(backend, nullptr, affine, formula, q);
      std::vector<std::byte> bytes(x.numbers.size());
      std::vector<double> found(groups);
      quantizer.quantize(rows_in(x), {bytes.data(), q.dtype}, {.scale = found.data()});
      check_same(found, scales);
      check_same(read_all(bytes, q.dtype), expected);
    }
  }
}
