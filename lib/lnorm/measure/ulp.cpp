#include "lnorm/measure/ulp.hpp"

namespace lnorm {

std::uint64_t ulp_distance(Number actual, Number expected, DType dtype) noexcept {
  return visit(dtype, [&]<class T>(T) { return ulp_distance<T>(actual, expected); });
}

}  // namespace lnorm
