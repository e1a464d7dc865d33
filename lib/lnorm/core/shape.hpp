#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lnorm {

// Extents of a tensor, outermost first; empty for a zero-dimensional tensor, which has one element.
using Shape = std::vector<std::int64_t>;

// Axes by their numbers, in ascending order unless something else is said.
using Axes = std::vector<std::size_t>;

inline constexpr std::size_t kMaxDims = 64;

// The product, or nothing where it does not fit (a zero factor makes it 0 whatever the others are).
std::optional<std::int64_t> checked_product(std::span<const std::int64_t> factors);

// The number of elements. Throws Error if it does not fit in 63 bits.
std::int64_t element_count(std::span<const std::int64_t> shape);

// The index of the element at a position in C order, and the other way round. A shape without elements has index 0 along axes of
// extent 0.
Shape index_of(std::int64_t position, const Shape& shape);
std::int64_t position_of(const Shape& index, const Shape& shape);

// "(2, 3, 4)", "(768)", "()".
std::string to_string(std::span<const std::int64_t> shape);

}  // namespace lnorm
