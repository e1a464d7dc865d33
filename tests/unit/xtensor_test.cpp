#include "lnorm/xtensor.hpp"

#include <cmath>
#include <xtensor/xadapt.hpp>
#include <xtensor/xmanipulation.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xrandom.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include "lnorm/core/error.hpp"
#include "support/catch.hpp"

namespace {

// The formula as an xtensor user would write it; good to a few ulp on tame data.
xt::xarray<double> naive(const xt::xarray<double>& x, const std::vector<std::size_t>& axes,
                         double eps) {
  const xt::xarray<double> mean = xt::mean(x, axes, xt::keep_dims);
  const xt::xarray<double> variance = xt::mean(xt::square(x - mean), axes, xt::keep_dims);
  return (x - mean) / xt::sqrt(variance + eps);
}

}  // namespace

TEST_CASE("layer_norm takes containers, views and expressions of any layout", "[xtensor]") {
  const xt::xarray<double> x = xt::random::randn<double>({3, 4, 5});
  const xt::xarray<double> expected = naive(x, {2}, 1e-5);
  const auto [y, mean, rstd] = lnorm::layer_norm(x);
  CHECK(xt::allclose(y, expected, 1e-13, 1e-13));
  CHECK((mean.shape() == xt::xarray<double>::shape_type{3, 4, 1}));
  const xt::xarray<double> deviation_squared =
      xt::mean(xt::square(x - mean), std::vector<std::size_t>{2}, xt::keep_dims);
  CHECK(xt::allclose(mean, xt::mean(x, {2}, xt::keep_dims), 1e-13, 1e-15));
  CHECK(xt::allclose(rstd, 1 / xt::sqrt(deviation_squared + 1e-5), 1e-13));

  const xt::xarray<double, xt::layout_type::column_major> fortran = x;
  CHECK((lnorm::layer_norm(fortran).y == y));
  const xt::xtensor<double, 3> fixed = x;
  CHECK((lnorm::layer_norm(fixed).y == y));
  CHECK((lnorm::layer_norm(x * 2.0 - x).y == y));
  CHECK((lnorm::layer_norm(xt::view(x, 1)).y == xt::view(y, 1)));
  CHECK((lnorm::layer_norm(xt::view(x, xt::all(), xt::range(0, 4, 2))).y ==
         xt::view(y, xt::all(), xt::range(0, 4, 2))));
}

TEST_CASE("layer_norm keeps float, and takes integers and bool as double", "[xtensor]") {
  const auto single = lnorm::layer_norm(xt::xarray<float>{{1, 2, 3}});
  static_assert(std::is_same_v<decltype(single.y), xt::xarray<float>>);
  const auto integer = lnorm::layer_norm(xt::xarray<int>{{1, 2, 3}});
  static_assert(std::is_same_v<decltype(integer.y), xt::xarray<double>>);
  CHECK(std::fabs(integer.y(0, 2) - 1.2247356859083902) < 1e-15);
  CHECK(single.y(0, 2) == static_cast<float>(integer.y(0, 2)));
  CHECK(lnorm::layer_norm(xt::xarray<bool>{true, false}).mean(0) == 0.5);
  CHECK(lnorm::layer_norm(xt::xarray<long>{1, 2, 3}).y(0) == integer.y(0, 0));
}

TEST_CASE("layer_norm applies weight and bias of the normalized shape, or scalars", "[xtensor]") {
  const xt::xarray<double> x = xt::random::randn<double>({2, 3, 4});
  const xt::xarray<float> weight = xt::random::randn<float>({3, 4});
  const xt::xarray<int> bias = xt::ones<int>({3, 4});
  lnorm::LayerNormOptions options;
  options.axes = lnorm::NormalizedShape{{3, 4}};
  options.formula.eps = 1e-3;
  const auto result = lnorm::layer_norm(x, weight, bias, options);
  CHECK(xt::allclose(result.y, naive(x, {1, 2}, 1e-3) * weight + 1.0, 1e-13, 1e-13));
  CHECK((result.rstd.shape() == xt::xarray<double>::shape_type{2, 1, 1}));

  options.zero_centered_weight = true;
  const auto scalar =
      lnorm::layer_norm(x, xt::xscalar<double>(1), xt::xscalar<double>(0.5), options).y;
  CHECK(xt::allclose(scalar, naive(x, {1, 2}, 1e-3) * 2 + 0.5, 1e-13, 1e-13));

  CHECK_THROWS_WITH(lnorm::layer_norm(x, xt::xarray<float>{1, 2}, bias, options),
                    "weight has shape (2), but the normalized shape is (3, 4)");
  options.axes = lnorm::FirstAxis{3};
  CHECK_THROWS_AS(lnorm::layer_norm(x, options), lnorm::Error);
}

TEST_CASE("layer_norm of an empty tensor is empty", "[xtensor]") {
  const auto result = lnorm::layer_norm(xt::xarray<float>::from_shape({2, 0}));
  CHECK((result.y.shape() == xt::xarray<float>::shape_type{2, 0}));
  CHECK(std::isnan(result.mean(1, 0)));
}

TEST_CASE("layer_norm takes any axes, as if they were moved to the end and back", "[xtensor]") {
  const xt::xarray<float> x = xt::random::randn<float>({2, 3, 4, 5});
  const xt::xarray<double> weight = xt::random::randn<double>({3, 5});
  const xt::xarray<float> moved = xt::transpose(x, {0, 2, 1, 3});
  lnorm::LayerNormOptions options;
  options.axes = lnorm::AxisList{{2, 3}};
  const auto expected = lnorm::layer_norm(moved, weight, xt::xscalar<double>(0.5), options);
  options.axes = lnorm::AxisList{{3, 1}};
  const auto actual = lnorm::layer_norm(x, weight, xt::xscalar<double>(0.5), options);
  CHECK((actual.y == xt::transpose(expected.y, {0, 2, 1, 3})));
  CHECK((actual.mean.shape() == xt::xarray<double>::shape_type{2, 1, 4, 1}));
  CHECK((xt::flatten(actual.mean) == xt::flatten(expected.mean)));
  CHECK((xt::flatten(actual.rstd) == xt::flatten(expected.rstd)));
}

TEST_CASE("layer_norm rounds where it is asked to", "[xtensor]") {
  const xt::xarray<float> x = xt::random::randn<float>({7, 40});
  const xt::xarray<float> weight = xt::random::randn<float>({40});
  const xt::xarray<float> bias = xt::random::randn<float>({40});
  lnorm::LayerNormOptions options;
  const xt::xarray<float> xhat = lnorm::layer_norm(x, options).y;
  options.rounding = {.xhat = true, .product = true};
  // Every operation on floats is rounded.
  const xt::xarray<float> product = xhat * weight;
  const xt::xarray<float> expected = product + bias;
  CHECK((lnorm::layer_norm(x, weight, bias, options).y == expected));
}

namespace {

struct NaiveGradients {
  xt::xarray<double> dx;
  xt::xarray<double> dweight;
  xt::xarray<double> dbias;
};

// The same for the backward pass over the last axis of two.
NaiveGradients naive_backward(const xt::xarray<double>& dy, const xt::xarray<double>& x,
                              const xt::xarray<double>& weight, double eps) {
  const xt::xarray<double> xhat = naive(x, {1}, eps);
  const xt::xarray<double> mean = xt::mean(x, {1}, xt::keep_dims);
  const xt::xarray<double> variance = xt::mean(xt::square(x - mean), {1}, xt::keep_dims);
  const xt::xarray<double> g = dy * weight;
  const xt::xarray<double> g_mean = xt::mean(g, {1}, xt::keep_dims);
  const xt::xarray<double> gx_mean = xt::mean(g * xhat, {1}, xt::keep_dims);
  return {(g - g_mean - xhat * gx_mean) / xt::sqrt(variance + eps), xt::sum(dy * xhat, {0}),
          xt::sum(dy, {0})};
}

bool are_close(const xt::xarray<double>& a, const xt::xarray<double>& b, double atol = 1e-12) {
  return a.shape() == b.shape() && xt::allclose(a, b, 0, atol);
}

}  // namespace

TEST_CASE("layer_norm_backward gives the three gradients", "[xtensor]") {
  const xt::xarray<double> x = xt::random::randn<double>({7, 5});
  const xt::xarray<double> dy = xt::random::randn<double>({7, 5});
  const xt::xarray<double> weight = xt::random::randn<double>({5});
  lnorm::LayerNormOptions options;
  options.formula.eps = 1e-3;
  const auto [dx, dweight, dbias] = lnorm::layer_norm_backward(dy, x, weight, options);
  const NaiveGradients expected = naive_backward(dy, x, weight, 1e-3);
  CHECK(are_close(dx, expected.dx));
  CHECK(are_close(dweight, expected.dweight));
  CHECK(are_close(dbias, expected.dbias));

  // Without a weight it is 1, and its gradient is there all the same.
  const auto plain = lnorm::layer_norm_backward(dy, x, options);
  CHECK(are_close(plain.dx, naive_backward(dy, x, xt::ones<double>({5}), 1e-3).dx));
  CHECK((plain.dweight == dweight));

  // One number for all columns has one gradient.
  const auto uniform = lnorm::layer_norm_backward(dy, x, xt::xscalar<double>(2), options);
  CHECK(uniform.dweight.dimension() == 0);
  CHECK(are_close(uniform.dx, 2 * plain.dx));
  CHECK(are_close(uniform.dweight, xt::sum(dweight), 1e-11));
  CHECK(are_close(uniform.dbias, xt::sum(dy), 1e-11));

  // 1 + weight.
  options.zero_centered_weight = true;
  CHECK(are_close(lnorm::layer_norm_backward(dy, x, weight, options).dx,
                  naive_backward(dy, x, weight + 1, 1e-3).dx));
}

TEST_CASE("layer_norm_backward takes any axes, layouts and types", "[xtensor]") {
  const xt::xarray<float> x = xt::random::randn<float>({3, 4, 5});
  const xt::xarray<double> dy = xt::random::randn<double>({3, 4, 5});
  const xt::xarray<double> weight = xt::random::randn<double>({4});
  lnorm::LayerNormOptions options;
  const auto expected = lnorm::layer_norm_backward(xt::transpose(dy, {0, 2, 1}),
                                                   xt::transpose(x, {0, 2, 1}), weight, options);
  options.axes = lnorm::AxisList{{1}};
  const auto actual = lnorm::layer_norm_backward(dy, x, weight, options);
  static_assert(std::is_same_v<decltype(actual.dx), xt::xarray<float>>);
  static_assert(std::is_same_v<decltype(actual.dweight), xt::xarray<double>>);
  CHECK((actual.dx == xt::transpose(expected.dx, {0, 2, 1})));
  CHECK((actual.dweight == expected.dweight));
  CHECK((actual.dbias == expected.dbias));

  const xt::xarray<double, xt::layout_type::column_major> fortran = x;
  CHECK((lnorm::layer_norm_backward(dy * 1.0, fortran, weight, options).dweight == actual.dweight));

  const auto integers = lnorm::layer_norm_backward(
      xt::xarray<int>{1, 0, 0}, xt::xarray<int>{1, 2, 4}, xt::xarray<float>{1, 1, 1});
  static_assert(std::is_same_v<decltype(integers.dx), xt::xarray<double>>);
  static_assert(std::is_same_v<decltype(integers.dbias), xt::xarray<float>>);
  CHECK((integers.dbias == xt::xarray<float>{1, 0, 0}));

  CHECK_THROWS_WITH(lnorm::layer_norm_backward(weight, x),
                    "dy has shape (4), but x has shape (3, 4, 5)");
  CHECK_THROWS_WITH(lnorm::layer_norm_backward(dy, x, weight),
                    "weight has shape (4), but the normalized shape is (5)");
  const auto empty = lnorm::layer_norm_backward(xt::xarray<float>::from_shape({2, 0}),
                                                xt::xarray<float>::from_shape({2, 0}));
  CHECK((empty.dx.shape() == xt::xarray<float>::shape_type{2, 0}));
  CHECK(empty.dweight.size() == 0);
  const auto no_rows = lnorm::layer_norm_backward(xt::xarray<float>::from_shape({0, 2}),
                                                  xt::xarray<float>::from_shape({0, 2}));
  CHECK((no_rows.dweight == xt::zeros<float>({2})));
}

TEST_CASE("layer_norm_by takes statistics that are known", "[xtensor][norms]") {
  const xt::xarray<double> x = xt::random::randn<double>({3, 4, 5});
  const xt::xarray<double> weight{1, -2, 3, 0.5};
  const xt::xarray<double> bias{0, 1, 2, 3};
  lnorm::LayerNormOptions options;
  options.axes = lnorm::AxisList{{0, 2}};
  options.affine_axes = lnorm::AxisList{{1}};
  const xt::xarray<double> mean{0.5, -1, 2, 0};
  const xt::xarray<double> variance{1, 4, 0.25, 9};
  const auto along = [](const xt::xarray<double>& numbers) {
    return xt::view(numbers, xt::newaxis(), xt::all(), xt::newaxis());
  };
  const xt::xarray<double> xhat = (x - along(mean)) / xt::sqrt(along(variance) + 1e-5);
  const auto y = lnorm::layer_norm_by(x, {mean, variance}, weight, bias, options);
  CHECK(xt::allclose(y, xhat * along(weight) + along(bias), 1e-13, 1e-13));
  CHECK(xt::allclose(lnorm::layer_norm_by(x, {mean, variance}, options), xhat, 1e-13, 1e-13));
  const xt::xarray<double, xt::layout_type::column_major> fortran = x;
  CHECK((lnorm::layer_norm_by(fortran, {mean, variance}, weight, bias, options) == y));
  // As they were computed; of groups they have a number each.
  const auto computed = lnorm::layer_norm(x, options);
  const auto by_rstd = lnorm::layer_norm_by(x, {computed.mean, computed.rstd, true}, options);
  CHECK(xt::allclose(by_rstd, computed.y, 1e-13, 1e-13));
  options = {};
  options.axes = lnorm::Groups{2};
  const auto groups = lnorm::layer_norm(x, options);
  CHECK(xt::allclose(lnorm::layer_norm_by(x, {groups.mean, groups.rstd, true}, options), groups.y,
                     1e-13, 1e-13));
  CHECK_THROWS_AS(lnorm::layer_norm_by(x, {mean, variance}, options), lnorm::Error);
  CHECK_THROWS_AS(lnorm::layer_norm_by(x, {mean, -variance}, {}), lnorm::Error);
  CHECK_THROWS_WITH(lnorm::layer_norm_by(x, {mean, {}}, options), Catch::StartsWith("spread is 0"));
  options.formula.rms = true;
  const xt::xarray<double> four = 4.0;
  options.formula.eps = 0;
  CHECK((lnorm::layer_norm_by(x, {{}, four}, options) == x / 2));
}
