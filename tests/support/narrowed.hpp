#pragma once

#include <type_traits>

#include "lnorm/core/dtype.hpp"

namespace support {

// The element of a dtype's C++ type that is nearest to a number.
template <class T>
T narrowed(double value) {
  if constexpr (lnorm::SmallFloat<T>) {
    return lnorm::rounded_to<T>(value);
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
