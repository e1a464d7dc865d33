#include "lnorm/core/float_format.hpp"

namespace lnorm {

FloatFormat float_format(DType dtype) {
  switch (dtype) {
    case DType::float8_e4m3fn:
      return {4, -9, 448};
    case DType::float8_e5m2:
      return {3, -16, 57344};
    case DType::float16:
      return {11, -24, 0x1.ffcp15};
    case DType::bfloat16:
      return {8, -133, 0x1.fep127};
    case DType::float32:
      return {24, -149, 0x1.fffffep127};
    default:
      return {53, -1074, 0x1.fffffffffffffp1023};
  }
}

}  // namespace lnorm
