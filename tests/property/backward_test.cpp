// dx by every kernel against exact arithmetic: not one element may differ from the correctly rounded one.

#include "lnorm/kernel/row_gradient.hpp"
#include "property/gradient_case.hpp"
#include "support/pace.hpp"

namespace {

using namespace property;
using lnorm::DType;
using lnorm::EpsOn;
using lnorm::Formula;

DType any_float(Random& random) { return kFloats[random() % kFloats.size()]; }

Data any_weight(Random& random, int length) {
  const DType dtype = any_float(random);
  switch (random() % 8) {
    case 0:
      return floats(dtype, kEnds, length, random);
    case 1:
      return floats(dtype, kNormal, 1, random);
    case 2:
      return floats(dtype, recipe("constant zero"), length, random);
    case 3:
    case 4:
      return {dtype, {}, {}};
    default:
      return floats(dtype, kNormal, length, random);
  }
}

// What a float32 kernel computes and saves of x.
oracle::Saved saved_by_float32(const Data& x, const Formula& formula) {
  const auto value = [](const oracle::Number& number) {
    return number.is_integer ? static_cast<float>(number.integer)
                             : static_cast<float>(number.value);
  };
  const auto n = static_cast<float>(x.numbers.size());
  float sum = 0;
  for (const oracle::Number& number : x.numbers) sum += value(number);
  const float mean = formula.rms ? 0 : sum / n;
  float squares = 0;
  for (const oracle::Number& number : x.numbers) {
    squares += (value(number) - mean) * (value(number) - mean);
  }
  const float variance = squares / (n - static_cast<float>(formula.ddof));
  return {{mean}, {1 / std::sqrt(variance + static_cast<float>(formula.eps))}};
}

}  // namespace

TEST_CASE("every dx of floats is correctly rounded", "[backward]") {
  const int length = GENERATE(1, 2, 3, 7, 17, 31, 33, 65, 768, 1025);
  Random random(static_cast<std::uint64_t>(length) * 7919);
  int number = length;
  for (const DType dtype : kFloats) {
    for (const Recipe& of_x : float_recipes()) {
      if (!support::takes(number++)) continue;
      for (const DType dx : kFloats) {
        // The oracle takes its time.
        if (length > 20 && random() % 16 != 0) continue;
        const Recipe& of_dy =
            random() % 2 == 0 ? kNormal : float_recipes()[random() % float_recipes().size()];
        GradientCase c{floats(dtype, of_x, length, random),
                       floats(any_float(random), of_dy, length, random),
                       any_weight(random, length)};
        c.plus_one = random() % 3 == 0;
        c.formula = any_formula(random, length);
        c.dx = dx;
        if (random() % 5 == 0) c.saved = saved_by_float32(c.x, c.formula);
        INFO("x " << of_x.name << ", dy " << of_dy.name);
        check(c);
      }
    }
  }
}

TEST_CASE("every dx of integers is correctly rounded", "[backward]") {
  const DType dtype = GENERATE(from_range(kIntegers));
  for (const int length : {1, 2, 5, 17, 130}) {
    for (const int spread_bits : {1, 5, 17, 40, 64}) {
      Random random(static_cast<std::uint64_t>(length * 1000 + spread_bits));
      GradientCase c{integers(dtype, length, spread_bits, random),
                     floats(any_float(random), kNormal, length, random),
                     any_weight(random, length)};
      c.formula = any_formula(random, length);
      c.dx = any_float(random);
      if (random() % 3 == 0) c.dy = integers(DType::int64, length, 60, random);
      check(c);
    }
  }
}

TEST_CASE("dx does not depend on the byte order", "[backward]") {
  Random random(52);
  const auto any = [&](DType dtype, int length) {
    return lnorm::is_floating(dtype) ? floats(dtype, kNormal, length, random)
                                     : integers(dtype, length, 60, random);
  };
  for (const int length : {1, 7, 65, 1100}) {
    for (const DType of_x : {DType::float16, DType::bfloat16, DType::float32, DType::float64,
                             DType::int8, DType::uint16, DType::int32, DType::int64}) {
      for (const DType of_dy :
           {DType::float16, DType::bfloat16, DType::float32, DType::float64, DType::uint64}) {
        GradientCase c{any(of_x, length), any(of_dy, length)};
        c.dx = any_float(random);
        for (const lnorm::Backend& backend : lnorm::backends()) {
          if (backend.table == nullptr && length > 100) continue;
          INFO(describe(c) << ", " << backend.name);
          CHECK(backward(backend, c, true) == backward(backend, c, false));
        }
      }
    }
  }
}

TEST_CASE("dx of rows far from 0 is correctly rounded", "[backward]") {
  const double mean = GENERATE(1e4, -1e5, 1e6, 1e7, 1e8);
  const int length = GENERATE(2, 33, 300);
  const Recipe far{"far", [&](Random& r, DType, int, int) { return mean + 20 * normal(r); }};
  Random random(41);
  for (const DType dtype : {DType::float32, DType::float64}) {
    for (const EpsOn eps_on : {EpsOn::variance, EpsOn::std, EpsOn::max}) {
      GradientCase c{floats(dtype, far, length, random), floats(dtype, kNormal, length, random),
                     any_weight(random, length)};
      c.formula.eps_on = eps_on;
      c.dx = dtype;
      check(c);
    }
  }
}

TEST_CASE("a constant row has the gradient that eps leaves it", "[backward]") {
  const int length = GENERATE(1, 3, 64, 300);
  const double value = GENERATE(0.0, 0.1, -1e4);
  Random random(42);
  for (const DType dtype : kFloats) {
    GradientCase c{floats(dtype, std::vector<double>(static_cast<std::size_t>(length), value)),
                   floats(dtype, kNormal, length, random)};
    c.dx = dtype;
    for (const double eps : {1e-5, 1.0, 1e-300}) {
      c.formula.eps = eps;
      check(c);
    }
    c.formula.eps_on = EpsOn::max;
    check(c);
    // No derivative of sqrt(0); by RMS 0 alone is constant.
    c.formula.eps_on = EpsOn::std;
    CHECK(std::isnan(backward(lnorm::backends().front(), c).front()));
    check(c);
    c.formula = {.eps = 0};
    CHECK(std::isnan(backward(lnorm::backends().front(), c).front()));
    check(c);
    c.formula.rms = true;
    check(c);
  }
}

TEST_CASE("dx that cancels is exactly 0, and has its own size beside that", "[backward]") {
  const int length = GENERATE(1, 2, 3, 65);
  Random random(43);
  for (const DType dtype : kFloats) {
    std::vector<double> small(static_cast<std::size_t>(length));
    for (double& value : small) value = static_cast<double>(random() % 64);
    small[0] = 99;
    GradientCase c{floats(dtype, small), doubles(small)};
    c.dx = dtype;
    const auto is_zero = [&](double dx) { return dx == 0 && !std::signbit(dx); };
    const auto check_zero = [&] {
      for (const lnorm::Backend& backend : lnorm::backends()) {
        INFO(describe(c) << ", " << backend.name);
        const std::vector<double> dx = backward(backend, c);
        CHECK(std::all_of(dx.begin(), dx.end(), is_zero));
      }
    };
    // g is constant, or dy is 0.
    for (const double value : {0.1, -3.0, 1e4, 0.0}) {
      c.dy = floats(dtype, std::vector<double>(small.size(), value));
      for (const double eps : {1e-5, 0.0}) {
        c.formula = {.eps = eps};
        if (length > 1 || eps > 0) check_zero();
      }
    }
    c.formula = {.rms = true};  // dy is 0 still
    check_zero();
    // One element of dy is not 0.
    std::vector<double> one_hot(small.size(), 0);
    one_hot[small.size() / 2] = 1;
    c.dy = floats(dtype, one_hot);
    check(c);
    c.formula = {};
    check(c);
    // g = a + b x lies in what normalization takes away: with eps = 0 nothing remains, with a tiny one next to nothing.
    std::vector<double> linear;
    for (const double value : small) linear.push_back(7 - 2 * value);
    c.dy = doubles(linear);
    for (const std::int64_t ddof : {0, 1}) {
      if (length < 2) continue;
      c.formula = {.eps = 0, .ddof = ddof};
      check_zero();
      for (const double eps : {1e-5, 1e-30, 1e-300, 5e-324}) {
        c.formula.eps = eps;
        check(c);
        c.formula.eps_on = EpsOn::std;
        check(c);
        c.formula.eps_on = EpsOn::variance;
      }
    }
    c.dy = c.x;
    c.formula = {.eps = 0, .rms = true};
    check_zero();
    c.formula.eps = 1e-40;
    check(c);
  }
}

TEST_CASE("dx of a line in x, and of what is off it by a little, is correctly rounded",
          "[backward]") {
  const int length = GENERATE(2, 3, 8, 33, 300);
  Random random(static_cast<std::uint64_t>(length) + 45);
  for (const Recipe& of_x : float_recipes()) {
    for (const DType dtype : {DType::float32, DType::float16, DType::float64}) {
      if (length > 20 && random() % 8 != 0) continue;
      GradientCase c{floats(dtype, of_x, length, random), {dtype, {}, {}}};
      c.dx = random() % 2 == 0 ? dtype : DType::float32;
      c.dy = c.x;
      if (random() % 2 == 0) c.weight = floats(DType::float32, kNormal, 1, random);
      const bool is_off = random() % 2 == 0;
      if (is_off) {
        std::vector<double> values;
        for (const oracle::Number& number : c.dy.numbers) values.push_back(number.value);
        values.back() *= 0.5;
        c.dy = floats(dtype, values);
      }
      for (const double eps : {0.0, 1e-30, 1e-5}) {
        c.formula = {.eps = eps,
                     .eps_on = any_place(random),
                     .ddof = static_cast<std::int64_t>(random() % 2),
                     .rms = random() % 2 == 0};
        INFO("x " << of_x.name << ", eps " << eps << ", off the line: " << is_off);
        check(c);
      }
    }
  }
}

TEST_CASE("a line in x whose products underflow is no line yet", "[backward]") {
  // g is 0 but for one element, which is too small for a product of doubles.
  for (const double tiny : {0x1p-1060, 0x1p-600, 0x1p-300}) {
    for (const double weight : {1.0, 0x1p-30, 0x1p-500}) {
      for (const double step : {1.0, 0x1p-500, 0x1p-1000}) {
        GradientCase c{doubles({0, step, 2 * step, 5 * step}), doubles({0, 0, 0, tiny}),
                       doubles({weight})};
        c.dx = DType::float64;
        for (const bool rms : {false, true}) {
          c.formula = {.eps = 0, .rms = rms};
          INFO(tiny << ' ' << weight << ' ' << step << ' ' << rms);
          check(c);
        }
      }
    }
  }
}

TEST_CASE("a weight that undoes dy leaves dx exactly 0", "[backward]") {
  // dy * weight is 1 for all: powers of two, and 1 + weight.
  std::vector<double> dy;
  std::vector<double> weight;
  Random random(44);
  for (int i = 0; i < 50; ++i) {
    const int exponent = static_cast<int>(random() % 20) - 10;
    dy.push_back(std::ldexp(1.0, exponent));
    weight.push_back(std::ldexp(1.0, -exponent));
  }
  GradientCase c{floats(DType::float32, kNormal, 50, random), floats(DType::float32, dy),
                 floats(DType::float32, weight)};
  c.dx = DType::float32;
  check(c);
  CHECK(backward(lnorm::backends().front(), c) == std::vector<double>(50, 0.0));
  for (double& value : weight) value -= 1;
  c.weight = floats(DType::float64, weight);
  c.plus_one = true;
  check(c);
  CHECK(backward(lnorm::backends().front(), c) == std::vector<double>(50, 0.0));
}

namespace {

// Halfway between two numbers of dtype near 1, and near the ends of its range.
std::vector<double> ties(DType dtype) {
  const double half = ulp_of_1(dtype) / 2;
  const double least = smallest_positive(dtype) / 2;
  const double most = largest_finite(dtype);
  return {1 + half,  1 + 3 * half, -(1 + half),
          least,     3 * least,    std::ldexp(1.0, std::ilogb(most)) * (2 - half),
          5 * least, -7 * least};
}

// x = -1, 1, -1, 1, ... with eps = 0 is its own x-hat. Elements 0 to 3 of dy are g0, g1, -g0, -g1: their sum is 0,
// and that with x, too, so that dx = g. A tail in element 5 changes dx of elements 1 and 3 by -2 tail / n.
GradientCase tie_case(DType dtype, double g0, double g1, double tail, int length) {
  std::vector<double> x;
  std::vector<double> dy(static_cast<std::size_t>(length), 0);
  for (int i = 0; i < length; ++i) x.push_back(i % 2 == 0 ? -1 : 1);
  dy[0] = g0;
  dy[1] = g1;
  dy[2] = -g0;
  dy[3] = -g1;
  if (length > 5) dy[5] = tail;
  GradientCase c{floats(dtype, x), doubles(dy)};
  c.formula.eps = 0;
  c.dx = dtype;
  return c;
}

}  // namespace

TEST_CASE("built ties of dx go to even, and what is next to them to its side", "[backward]") {
  const DType dtype = GENERATE(DType::float16, DType::bfloat16, DType::float32);
  const int length = GENERATE(4, 64, 130);
  for (const double tie : ties(dtype)) {
    CAPTURE(tie);
    for (const double tail : {0.0, 0x1p-46, 0x1p-100, 0x1p-300, -0x1p-46, -0x1p-100, -0x1p-300}) {
      check(tie_case(dtype, tie, -tie, tail * std::fabs(tie), length));
    }
    for (const double side : {-1, 1}) {
      const double next = tie + side * std::ldexp(1.0, std::ilogb(tie) - 52);
      check(tie_case(dtype, next, tie, 0, length));
    }
    // With s = 4, and as a product with the weight.
    GradientCase c = tie_case(dtype, tie, -tie, 0, length);
    c.weight = doubles(std::vector<double>(static_cast<std::size_t>(length), 4));
    std::vector<double> x;
    for (int i = 0; i < length; ++i) x.push_back(i % 2 == 0 ? -3 : 3);
    c.x = floats(dtype, x);
    c.formula.eps = 7;
    check(c);
    c.formula = {.eps = 1, .eps_on = EpsOn::std};
    check(c);
    c.saved = oracle::Saved{{0}, {0.25}};
    check(c);
  }
}

TEST_CASE("ties of dx in float64 go to even, and what is next to them to its side", "[backward]") {
  // 1 + 2^-26 + 2^-27 + 2^-53 as a product.
  GradientCase c = tie_case(DType::float64, 1 + 0x1p-27, -1 - 0x1p-27, 0, 8);
  c.weight = doubles(std::vector<double>(8, 1 + 0x1p-26));
  check(c);
  for (const double tail : {0x1p-60, -0x1p-60, 0x1p-200, -0x1p-200, 0x1p-1000, -0x1p-1000}) {
    c.dy = tie_case(DType::float64, 1 + 0x1p-27, -1 - 0x1p-27, tail, 8).dy;
    CAPTURE(tail);
    check(c);
  }
  // 2^-1074 * 3/2 and its neighbors.
  for (const double weight : {0.75, 0.75 + 0x1p-53, 0.75 - 0x1p-53}) {
    c = tie_case(DType::float64, 0x1p-1073, -0x1p-1073, 0, 8);
    c.weight = doubles({weight});
    CAPTURE(weight);
    check(c);
  }
}

TEST_CASE("a tie of dx with eps on an irrational standard deviation is seen", "[backward]") {
  // Variance 3, eps 1: dx of element 1 is -t/2, the others are irrational.
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32}) {
    for (const double mean : {0.0, 8.0}) {
      for (const double tie : ties(dtype)) {
        const double t = -2 * tie;
        for (const double tail : {0.0, 0x1p-52, -0x1p-52}) {
          GradientCase c{floats(dtype, std::vector<double>{mean + 3, mean - 1, mean - 1, mean - 1}),
                         doubles({3 * t, -2 * t * (1 + tail), -t, 0})};
          c.formula = {.eps = 1, .eps_on = EpsOn::std};
          c.dx = dtype;
          CAPTURE(tie, tail);
          check(c);
        }
      }
    }
  }
}

TEST_CASE("dx by a standard deviation and eps is exact where the root is a fraction, and where not",
          "[backward]") {
  const EpsOn place = GENERATE(EpsOn::std, EpsOn::max);
  for (const DType dtype : {DType::float16, DType::float32, DType::float64}) {
    for (const std::vector<double>& values : kRootRows) {
      // sqrt(5/3) to float64 among them, which is next to a standard deviation.
      for (const double eps : {0.0, 1.0, 0.5, 3.0, 1e-5, 0x1p-24, 0x1p-53, std::sqrt(5.0 / 3), 2.0,
                               2 + 0x1p-51, 2 - 0x1p-52}) {
        std::vector<double> dy(values.size(), 0.25);
        dy[0] = 3;
        dy[1] = -1;
        GradientCase c{floats(dtype, values), floats(dtype, dy)};
        c.formula = {.eps = eps, .eps_on = place, .ddof = values.size() == 4 ? 1 : 0};
        c.dx = dtype;
        check(c);
      }
    }
  }
}

TEST_CASE("saved statistics stand for mean and 1/s as they are", "[backward]") {
  const int length = GENERATE(2, 31, 300);
  Random random(45);
  for (const DType dtype : kFloats) {
    for (const std::string& name : std::vector<std::string>{
             "normal", "large mean, small deviation", "one outlier", "constant", "uniform 1e-3"}) {
      GradientCase c{floats(dtype, recipe(name), length, random),
                     floats(dtype, kNormal, length, random), any_weight(random, length)};
      c.dx = dtype;
      c.formula.ddof = static_cast<std::int64_t>(random() % 2);
      for (const bool rms : {false, true}) {
        c.formula.rms = rms;
        const oracle::Row row(c.x.numbers, {}, false, {}, c.formula);
        const double mean = rms ? 0 : row.mean();
        // Of a float32 kernel, the nearest float64, and of some other row.
        for (const oracle::Saved& saved :
             {saved_by_float32(c.x, c.formula), oracle::Saved{{mean}, {row.rstd()}},
              oracle::Saved{{rms ? 0 : -7e3}, {1e-4}}, oracle::Saved{{rms ? 0 : 0.3}, {1e30}}}) {
          c.saved = saved;
          check(c);
        }
      }
    }
  }
  // Not of the row: eps does not count, a constant row has a gradient.
  GradientCase c{doubles({2, 2, 2}), doubles({1, 2, 4})};
  c.saved = oracle::Saved{{1}, {0.5}};
  c.formula.eps = 0;
  check(c);
  c.formula.eps_on = EpsOn::std;
  check(c);
}

TEST_CASE("by constants dx is g / s, without a variance as well", "[backward]") {
  const std::vector<double> x{1, 2, -3};
  const std::vector<double> dy{1, -3, 0};
  for (const EpsOn eps_on : {EpsOn::variance, EpsOn::std}) {
    const Formula formula{.eps = 0.0625, .eps_on = eps_on};
    const double s = eps_on == EpsOn::std ? 0.0625 : 0.25;
    lnorm::SavedStatistics constants{{0.5}};
    constants.variance = lnorm::Number{0};
    for (const lnorm::Backend& backend : lnorm::backends()) {
      CAPTURE(backend.name, s);
      std::vector<double> dx(x.size());
      const auto rows = [](const std::vector<double>& numbers) {
        return lnorm::RowsIn{reinterpret_cast<const std::byte*>(numbers.data()), DType::float64,
                             std::endian::native, 1, 3};
      };
      lnorm::layer_norm_backward(backend, rows(x), rows(dy),
                                 {reinterpret_cast<std::byte*>(dx.data()), DType::float64}, {},
                                 formula, &constants, nullptr);
      CHECK(dx == std::vector<double>{1 / s, -3 / s, 0});
    }
  }
}

TEST_CASE("saved statistics that are not finite make dx NaN", "[backward]") {
  for (const auto& [mean, rstd] : {std::pair(kNan, 1.0), std::pair(0.0, kNan),
                                   std::pair(kInfinity, 1.0), std::pair(0.0, kInfinity)}) {
    GradientCase c{doubles({1, 2, 3}), doubles({1, 1, 2})};
    c.saved = oracle::Saved{{mean}, {rstd}};
    CAPTURE(mean, rstd);
    check(c);
  }
}

TEST_CASE("dx is right where it becomes subnormal, and where it overflows", "[backward]") {
  const DType dtype = GENERATE(from_range(kFloats));
  Random random(46);
  GradientCase c{floats(dtype, kNormal, 100, random), floats(dtype, kNormal, 100, random)};
  c.dx = dtype;
  const double least = smallest_positive(dtype);
  const double most = largest_finite(dtype);
  for (const double scale : {least, 3 * least, 100 * least, most, most / 2, most / 3}) {
    c.weight = doubles({scale});
    CAPTURE(scale);
    check(c);
    c.weight = doubles(std::vector<double>(100, scale));
    c.formula.eps_on = EpsOn::std;
    check(c);
    c.formula.eps_on = EpsOn::variance;
  }
}

// As float16 has it where a loss is a mean: from normal numbers to what rounds to 0, and zeros of both signs.
TEST_CASE("dx of float16 is right where most of it is subnormal", "[backward]") {
  const int length = GENERATE(1, 3, 16, 64, 300, 1500);
  const int exponent = GENERATE(-30, -26, -24, -20, -15, -12);
  Random random(static_cast<std::uint64_t>(length));
  const Data x = floats(DType::float16, kNormal, length, random);
  std::vector<double> dy;
  for (int i = 0; i < length; ++i) {
    dy.push_back(random() % 8 == 0 ? 0 : std::ldexp(normal(random), exponent));
  }
  for (const DType dtype : {DType::float16, DType::float32}) {
    GradientCase c{x, floats(dtype, dy)};
    c.dx = DType::float16;
    check(c);
    c.formula.rms = true;
    check(c);
  }
}

TEST_CASE("x, dy and eps at the ends of their ranges leave every dx right", "[backward]") {
  Random random(47);
  for (const DType dtype : kFloats) {
    for (const Recipe& of_x : {kNormal, kEnds}) {
      for (const Recipe& of_dy : {kNormal, kEnds}) {
        for (const double eps : {0.0, std::numeric_limits<double>::max(), 5e-324}) {
          GradientCase c{floats(dtype, of_x, 9, random), floats(dtype, of_dy, 9, random),
                         floats(dtype, kEnds, 9, random)};
          c.dx = dtype;
          c.formula = {.eps = eps, .eps_on = random() % 2 == 0 ? EpsOn::std : EpsOn::variance};
          check(c);
        }
      }
    }
  }
}

TEST_CASE("dx of rows that are constant but for one last place comes out right", "[backward]") {
  const DType dtype = GENERATE(from_range(kFloats));
  const int length = GENERATE(3, 64, 200);
  Random random(48);
  for (const double value : {1.0, -1000.0, 1e-7, 0.0}) {
    for (const double eps : {0.0, 1e-5, 1e-30}) {
      GradientCase c{constant_but_for_one(dtype, length, value),
                     floats(dtype, kNormal, length, random)};
      c.dx = dtype;
      c.formula.eps = eps;
      check(c);
      c.formula.eps_on = EpsOn::std;
      check(c);
    }
  }
}

TEST_CASE("dx of a row of a million elements is as exact as of a short one", "[backward][long]") {
  const std::string name = GENERATE(as<std::string>{}, "rising", "large mean, small deviation",
                                    "one outlier", "constant");
  // The oracle takes its time.
  const int length = support::share(name == "rising" ? 1'000'003 : 50'003);
  Random random(49);
  for (const DType dtype : {DType::float32, DType::float64}) {
    if (dtype == DType::float64 && name == "rising") continue;
    GradientCase c{floats(dtype, recipe(name), length, random),
                   floats(dtype, kNormal, length, random), floats(dtype, kNormal, length, random)};
    c.dx = dtype;
    c.formula.ddof = 1;
    check(c, random() % 1000, static_cast<std::size_t>(length) / 500);
  }
}

namespace {

// dx by RowGradient of parts with these ends.
std::vector<double> in_parts(const lnorm::Backend& backend, const GradientCase& c,
                             const std::vector<std::int64_t>& ends, bool sums_up) {
  const lnorm::AffineTerm weight = term(c.weight, c.plus_one);
  std::vector<lnorm::GradientPart> parts;
  std::int64_t first = 0;
  for (const std::int64_t end : ends) {
    const auto part = [&](const Data& of) { return part_of(rows_in(of), first, end - first); };
    parts.push_back({part(c.x), part(c.dy), first});
    first = end;
  }
  const auto saved = saved_of(c);
  lnorm::RowGradient row(
      {backend, c.x.dtype, c.dy.dtype, c.dx, c.length(), weight, c.formula, true},
      lnorm::sample_of(parts.front().x), saved ? &*saved : nullptr, [&](const auto& see) {
        for (auto part = parts.rbegin(); part != parts.rend(); ++part) see(*part);
      });
  if (sums_up) row.sum_up();
  while (row.wants_sums()) {
    lnorm::GradientSums sums;
    for (const lnorm::GradientPart& part : parts) sums += row.sums(part);
    row.take(sums);
  }
  const std::size_t size = lnorm::item_size(c.dx);
  std::vector<std::byte> dx(c.x.numbers.size() * size);
  for (const lnorm::GradientPart& part : parts) {
    row.write(part, {dx.data() + static_cast<std::size_t>(part.offset) * size, c.dx}, nullptr);
  }
  return read_all(dx, c.dx);
}

}  // namespace

TEST_CASE("dx of a row in parts is that of the whole row", "[backward]") {
  Random random(50);
  for (const Recipe& of_x : float_recipes()) {
    const DType dtype = any_float(random);
    const int length = 2100 + static_cast<int>(random() % 100);
    if (of_x.name == "near the largest" || of_x.name == "from subnormal to the largest") continue;
    GradientCase c{floats(dtype, of_x, length, random), floats(dtype, kNormal, length, random),
                   any_weight(random, length)};
    c.dx = any_float(random);
    c.formula = any_formula(random, length);
    if (random() % 4 == 0) c.saved = saved_by_float32(c.x, c.formula);
    const std::vector<double> whole = backward(lnorm::backends().front(), c);
    INFO("x " << of_x.name);
    check_dx(c, whole);
    for (const lnorm::Backend& backend : lnorm::backends()) {
      if (backend.table == nullptr && random() % 4 != 0) continue;
      INFO(describe(c) << ", " << backend.name);
      for (const std::vector<std::int64_t>& ends : std::vector<std::vector<std::int64_t>>{
               {length}, {1, length}, {1024, 2048, length}, {1000, 1001, 1999, length}}) {
        check_same(in_parts(backend, c, ends, random() % 2 == 0), whole);
      }
    }
  }
}

TEST_CASE("dx of rows comes out the same however they are grouped, wherever they lie",
          "[backward]") {
  const std::int64_t length = GENERATE(1, 3, 8, 16, 32, 40, 45, 130);
  const DType dtype = GENERATE(from_range(kFloats));
  const DType of_dx = GENERATE_COPY(values({dtype, DType::float32}));
  Random random(51);
  // One row of each kind, beside ordinary ones.
  Data x{dtype, {}, {}};
  Data dy{dtype, {}, {}};
  std::int64_t count = 0;
  const auto append_row = [&](Data& data, const Recipe& of) {
    append(data, floats(dtype, of, static_cast<int>(length), random));
  };
  for (const Recipe& kind : float_recipes()) {
    if (kind.name == "near the largest" || kind.name == "from subnormal to the largest") continue;
    for (const Recipe* of_x : {&kNormal, &kind, &kNormal}) append_row(x, *of_x);
    for (const Recipe* of_dy : {&kNormal, &kNormal, &kind}) append_row(dy, *of_dy);
    count += 3;
  }
  const Data weight = floats(DType::float32, kNormal, static_cast<int>(length), random);
  const lnorm::AffineTerm affine = term(weight);
  std::vector<lnorm::SavedStatistics> saved;
  for (std::int64_t r = 0; r < count; ++r) saved.push_back({{normal(random), 0}, {1, 0}});
  for (const bool has_saved : {false, true}) {
    const auto run = [&](const lnorm::Backend& backend, std::int64_t rows_a_call,
                         std::size_t address) {
      const auto moved = [&](const Data& data) {
        std::vector<std::byte> bytes(address);
        bytes.insert(bytes.end(), data.bytes.begin(), data.bytes.end());
        return bytes;
      };
      const std::vector<std::byte> moved_x = moved(x);
      const std::vector<std::byte> moved_dy = moved(dy);
      std::vector<std::byte> dx(address +
                                static_cast<std::size_t>(count * length) * lnorm::item_size(of_dx));
      const lnorm::RowsIn x_rows{moved_x.data() + address, dtype, std::endian::native, count,
                                 length};
      lnorm::RowsIn dy_rows = x_rows;
      dy_rows.data = moved_dy.data() + address;
      in_calls(x_rows, rows_a_call, [&](const lnorm::RowsIn& some, std::int64_t first) {
        lnorm::layer_norm_backward(backend, some, some_rows(dy_rows, first, some.rows),
                                   lnorm::row_of({dx.data() + address, of_dx}, length, first),
                                   affine, {}, has_saved ? saved.data() + first : nullptr, nullptr);
      });
      return std::vector<std::byte>(dx.begin() + static_cast<std::ptrdiff_t>(address), dx.end());
    };
    const std::vector<std::byte> expected = run(lnorm::backends().front(), 1, 0);
    for (const lnorm::Backend& backend : lnorm::backends()) {
      if (backend.table == nullptr && length > 3) continue;  // takes its time
      CAPTURE(backend.name, length, lnorm::name(dtype), lnorm::name(of_dx), has_saved);
      CHECK((run(backend, count, 0) == expected));
      CHECK((run(backend, 2, 1) == expected));
    }
  }
}

TEST_CASE("what is not finite makes dx of its row NaN, and of no other", "[backward]") {
  constexpr std::size_t kRows = 3;
  const double bad = GENERATE(as<double>{}, kNan, kInfinity, -kInfinity);
  const auto length = GENERATE(as<std::size_t>{}, 1, 3, 33, 130);
  const bool is_rms = GENERATE(false, true);
  std::vector<double> finite;
  for (std::size_t i = 0; i < kRows * length; ++i) {
    finite.push_back(1 + 0.25 * static_cast<double>(i % 11));
  }
  for (const std::size_t place : {std::size_t{0}, length / 2, length - 1}) {
    std::vector<double> broken = finite;
    broken[length + place] = bad;
    for (const DType dtype : kFloats) {
      for (const bool in_dy : {false, true}) {
        const Data x = floats(dtype, in_dy ? finite : broken);
        const Data dy = floats(dtype, in_dy ? broken : finite);
        for (const lnorm::Backend& backend : lnorm::backends()) {
          CAPTURE(backend.name, lnorm::name(dtype), in_dy, bad, place, length, is_rms);
          std::vector<std::byte> dx(x.bytes.size());
          lnorm::layer_norm_backward(backend, rows_in(x, 3), rows_in(dy, 3), {dx.data(), dtype}, {},
                                     {.rms = is_rms}, nullptr, nullptr);
          const std::vector<double> results = read_all(dx, dtype);
          for (std::size_t i = 0; i < results.size(); ++i) {
            if (std::isnan(results[i]) != (i / length == 1) || std::isinf(results[i])) {
              FAIL("element " << i << " is " << results[i]);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a weight that is not finite makes all of dx NaN", "[backward]") {
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    for (const double dy : {0.0, 1.0}) {
      for (const bool plus_one : {false, true}) {
        GradientCase c{doubles({1, 2, 3, 4}), doubles({1, dy, 2, 0}), doubles({1, bad, 1, 1})};
        c.plus_one = plus_one;
        CAPTURE(bad, dy);
        check(c);
        c.weight = doubles({bad});
        check(c);
      }
    }
  }
}
