// What README says for C++, in a project that knows only lnorm::lnorm.

#include <cmath>
#include <lnorm/xtensor.hpp>
#include <xtensor/xrandom.hpp>

int main() {
  try {
    lnorm::layer_norm(xt::xarray<float>{{1, 2}}, xt::xarray<float>{1, 2, 3}, xt::xarray<float>{1});
    return 1;
  } catch (const lnorm::Error&) {
  }
  xt::xarray<float> x = xt::random::randn<float>({2, 3, 768});
  auto [y, mean, rstd] = lnorm::layer_norm(x);
  const float expected = static_cast<float>((x(1, 2, 3) - mean(1, 2, 0)) * rstd(1, 2, 0));
  return std::fabs(y(1, 2, 3) - expected) < 1e-6F ? 0 : 1;
}
