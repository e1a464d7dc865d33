#pragma once

#include <type_traits>

#include "lnorm/core/dtype.hpp"

namespace support {

// The element of a dtype's C++ type that is nearest to a number.
template <class T>
T narrowed(double value) {
  if constexpr (std::is_same_v<T, lnorm::Float8E4M3>) {
    return lnorm::to_float8_e4m3(value);
  } else if constexpr (std::is_same_v<T, lnorm::Float8E5M2>) {
    return lnorm::to_float8_e5m2(value);
  } else if constexpr (std::is_same_v<T, lnorm::Float16>) {
    return lnorm::to_float16(value);
  } else if constexpr (std::is_same_v<T, lnorm::BFloat16>) {
    return lnorm::to_bfloat16(value);
  } else {
    return static_cast<T>(value);
  }
}

// An element as a number.
template <class T>
auto widened(T element) {
  if constexpr (std::is_arithmetic_v<T>) {
    return element;
  } else {
    return lnorm::to_double(element);
  }
}

}  // namespace support
