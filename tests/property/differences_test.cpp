// Central differences of the forward pass agree with the backward pass.

#include "property/gradient_case.hpp"

namespace {

using namespace property;
using lnorm::DType;
using lnorm::EpsOn;
using lnorm::Formula;

constexpr std::size_t kRows = 3;
constexpr std::size_t kLength = 12;

struct Tensors {
  std::vector<double> x;
  std::vector<double> weight;
  std::vector<double> bias;
};

std::vector<double> forward(const Tensors& at, const Formula& formula, bool plus_one) {
  const Data x = doubles(at.x);
  return read_all(
      normalized(lnorm::backends().front(), rows_in(x, kRows), DType::float64,
                 {term(doubles(at.weight), plus_one), term(doubles(at.bias), false)}, formula),
      DType::float64);
}

struct Difference {
  double quotient;
  double rounding;  // what the rounding of y may do to it
};

// (L(value + step) - L(value - step)) / (2 step), L = sum(dy y), of a value that is one of at's.
Difference difference(Tensors& at, double& value, double step, const std::vector<double>& dy,
                      const Formula& formula, bool plus_one) {
  const double center = value;
  value = center + step;
  REQUIRE(value - center == step);
  const std::vector<double> after = forward(at, formula, plus_one);
  value = center - step;
  REQUIRE(center - value == step);
  const std::vector<double> before = forward(at, formula, plus_one);
  value = center;
  long double sum = 0;
  double size = 0;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    // 11 bits more than the rounding of y, where long double has them; else their rounding is as large as that of y.
    sum += static_cast<long double>(dy[i]) * (static_cast<long double>(after[i]) - before[i]);
    size += std::fabs(dy[i]) * (std::fabs(after[i]) + std::fabs(before[i]));
  }
  return {static_cast<double>(sum / (2 * step)), 2 * 0x1p-53 * size / (2 * step)};
}

double norm(const std::vector<double>& values, std::size_t first, double center) {
  double squares = 0;
  for (std::size_t i = first; i < first + kLength; ++i) {
    squares += (values[i] - center) * (values[i] - center);
  }
  return std::sqrt(squares);
}

}  // namespace

TEST_CASE("central differences of the forward pass agree with the backward pass", "[backward]") {
  const EpsOn eps_on = GENERATE(EpsOn::variance, EpsOn::std);
  const bool is_rms = GENERATE(false, true);
  const std::int64_t ddof = GENERATE(0, 1);
  const bool plus_one = GENERATE(false, true);
  const double mean = GENERATE(0.0, 100.0);
  const Formula formula{.eps = 0.25, .eps_on = eps_on, .ddof = ddof, .rms = is_rms};
  Random random(70);
  Tensors at;
  std::vector<double> dy;
  // Of few bits, so that a step can be added exactly.
  const auto some = [&](double center) { return center + std::round(256 * normal(random)) / 256; };
  for (std::size_t i = 0; i < kRows * kLength; ++i) {
    at.x.push_back(some(mean));
    dy.push_back(some(0));
  }
  for (std::size_t i = 0; i < kLength; ++i) {
    at.weight.push_back(some(1));
    at.bias.push_back(some(0));
  }
  const lnorm::AffineTerm weight = term(doubles(at.weight), plus_one);
  const Data x = doubles(at.x);
  const Data dy_data = doubles(dy);
  std::vector<std::byte> dx_bytes(x.bytes.size());
  lnorm::ColumnGradients columns(kLength);
  const lnorm::Backend& backend = lnorm::backends().front();
  const lnorm::RowsIn x_rows = rows_in(x, kRows);
  const lnorm::RowsIn dy_rows = rows_in(dy_data, kRows);
  lnorm::layer_norm_backward(backend, x_rows, dy_rows, {dx_bytes.data(), DType::float64}, weight,
                             formula, nullptr, &columns);
  const std::vector<double> dx = read_all(dx_bytes, DType::float64);
  const lnorm::ParameterGradients parameters = lnorm::parameter_gradients(
      {backend, DType::float64, DType::float64, DType::float64, kLength, weight, formula}, columns,
      {.dtype = DType::float64}, {1, [&](const auto& see) {
                                    for (std::int64_t r = 0; r < std::int64_t{kRows}; ++r) {
                                      const auto read_row = [&](const auto& see_part) {
                                        see_part({row_of(x_rows, r), row_of(dy_rows, r)});
                                      };
                                      see(0, read_row, nullptr);
                                    }
                                  }});

  // dx. Let D = |x - mean|, the norm of a row, F = n - ddof, so that the standard deviation is r = D / sqrt(F). For
  // complex t with |t| <= D / 4, x + t e_j has a variance within 9/16 r^2 of r^2, since it changes by
  // (2 t <x - mean, v> + t^2 |v|^2) / F, |v| <= 1. So |s| >= sqrt(7/16) r there, |x - mean| <= 5/4 D, and x-hat is
  // analytic and at most 1.9 sqrt(F). By Cauchy's estimate in circles of D / 8 about real t, |t| <= D / 8, its third
  // derivative is at most 6 * 512 * 1.9 sqrt(F) / D^3 < 6000 sqrt(F) / D^3: a step h makes an error of at most
  // h^2 / 6 of that times |g|, in all elements. h is about 2^-20 D, where that is as small as what rounding does.
  for (std::size_t i = 0; i < at.x.size(); ++i) {
    const std::size_t first = i / kLength * kLength;
    double center = 0;
    for (std::size_t k = first; k < first + kLength; ++k) center += at.x[k] / kLength;
    const double distance = norm(at.x, first, is_rms ? 0 : center);
    double g = 0;
    for (std::size_t k = 0; k < kLength; ++k) {
      g += std::fabs(dy[first + k] * (at.weight[k] + (plus_one ? 1 : 0)));
    }
    const double step = std::exp2(std::ilogb(distance) - 20);
    const double truncation =
        step * step * 1000 * g * std::sqrt(static_cast<double>(kLength)) / std::pow(distance, 3);
    const Difference found = difference(at, at.x[i], step, dy, formula, plus_one);
    CAPTURE(i, dx[i], found.quotient, found.rounding, truncation);
    CHECK(std::fabs(dx[i] - found.quotient) <= truncation + 2 * found.rounding);
    CHECK(truncation + 2 * found.rounding <= 1e-7 * g);  // else this would say nothing
  }
  // y is linear in weight and bias: any step will do, and rounding is all that is left.
  for (std::size_t k = 0; k < kLength; ++k) {
    const Difference by_weight = difference(at, at.weight[k], 64, dy, formula, plus_one);
    CAPTURE(k, by_weight.quotient, by_weight.rounding);
    CHECK(std::fabs(parameters.dweight[k] - by_weight.quotient) <= 2 * by_weight.rounding);
    const Difference by_bias = difference(at, at.bias[k], 64, dy, formula, plus_one);
    CAPTURE(by_bias.quotient, by_bias.rounding);
    CHECK(std::fabs(parameters.dbias[k] - by_bias.quotient) <= 2 * by_bias.rounding);
  }
}
