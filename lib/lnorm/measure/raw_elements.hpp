#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"

// What can be seen of elements as they lie in a file, at the speed of memory: none of them is decoded.
namespace lnorm {

// Elements one after another.
struct RawElements {
  const std::byte* data;
  std::int64_t count;
  DType dtype;
  std::endian byte_order;
};

Number element_at(const RawElements& elements, std::int64_t index);

// The first that is neither infinite nor NaN.
std::optional<std::int64_t> first_finite(const RawElements& elements);

// The first of these that is not 0.
std::optional<std::int64_t> first_finite_not_zero(const RawElements& elements);

bool has_nan(const RawElements& elements);

// The greatest |element| of those that are finite, as a float64; kNoneFinite if there are none.
inline constexpr double kNoneFinite = -1;
double greatest_finite(const RawElements& elements);

}  // namespace lnorm
