#include "lnorm/core/shape.hpp"

#include <algorithm>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

std::optional<std::int64_t> checked_product(std::span<const std::int64_t> factors) {
  if (std::find(factors.begin(), factors.end(), 0) != factors.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return std::nullopt;
  }
  return product;
}

std::int64_t element_count(std::span<const std::int64_t> shape) {
  const auto count = checked_product(shape);
  if (!count) throw Error(concat("shape ", to_string(shape), " has more than 2^63 - 1 elements"));
  return *count;
}

Shape index_of(std::int64_t position, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const std::int64_t extent = std::max<std::int64_t>(shape[axis], 1);
    index[axis] = position % extent;
    position /= extent;
  }
  return index;
}

std::int64_t position_of(const Shape& index, const Shape& shape) {
  std::int64_t position = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    position = position * shape[axis] + index[axis];
  }
  return position;
}

std::string to_string(std::span<const std::int64_t> shape) {
  const auto word_of = [](std::int64_t extent) { return std::to_string(extent); };
  return concat("(", joined(shape, ", ", word_of), ")");
}

}  // namespace lnorm
