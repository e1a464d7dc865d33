#include "lnorm/measure/ulp.hpp"

namespace lnorm {

bool is_wider(DType dtype, DType than) {
  if (!is_floating(dtype) || !is_floating(than)) return false;
  const FloatFormat wide = float_format(dtype);
  const FloatFormat narrow = float_format(than);
  return wide.precision > narrow.precision && wide.least_exponent < narrow.least_exponent &&
         wide.greatest > narrow.greatest;
}

bool RealUlps::rounds_to(double infinity, double number) const noexcept {
  // From half an ulp beyond the greatest number on: ties go to the even significand, which is not its own.
  const double half_ulp = std::ldexp(1.0, std::ilogb(format_.greatest) - format_.precision);
  return std::isinf(infinity) && std::isfinite(number) &&
         std::signbit(infinity) == std::signbit(number) &&
         std::fabs(number) >= format_.greatest + half_ulp;
}

}  // namespace lnorm
