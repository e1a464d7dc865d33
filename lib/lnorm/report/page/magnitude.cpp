#include "lnorm/report/page/magnitude.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm::page {

Magnitude::Magnitude(double greatest) {
  constexpr double kMin = 1e-290;  // of which steps that are 1e-16 times as long have ticks
  constexpr double kMax = 1e300;   // a scale of which is no wider than numbers are
  if (greatest == 0 || (greatest >= kMin && greatest <= kMax) || !std::isfinite(greatest)) return;
  exponent_ = static_cast<int>(std::floor(std::log10(greatest)));
  const int first = std::clamp(-exponent_, -300, 300);
  factors_[0] = std::pow(10.0, first);
  factors_[1] = std::pow(10.0, -exponent_ - first);
}

std::string Magnitude::times() const {
  if (exponent_ == 0) return "";
  return concat(" * ", value_text(factors_[0]), " * ", value_text(factors_[1]));
}

std::string Magnitude::title(std::string_view what) const {
  return exponent_ == 0 ? std::string(what) : concat(what, " in 1e", exponent_);
}

}  // namespace lnorm::page
