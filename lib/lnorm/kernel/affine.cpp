#include "lnorm/kernel/affine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"

namespace lnorm {

AffineTerm::AffineTerm(const TensorInfo& info, const std::vector<std::byte>& elements,
                       bool plus_one) {
  const auto size = static_cast<std::int64_t>(item_size(info.dtype));
  const std::int64_t count = static_cast<std::int64_t>(elements.size()) / size;
  high_.resize(static_cast<std::size_t>(count));
  low_.resize(static_cast<std::size_t>(count));
  const auto chunk = std::make_unique<Chunk>();
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t n = std::min(kChunk, count - start);
    load(elements.data() + start * size, info.dtype, info.byte_order, n, *chunk);
    std::copy_n(chunk->high, n, high_.begin() + start);
    if (has_low(info.dtype)) std::copy_n(chunk->low, n, low_.begin() + start);
  }
  for (std::size_t i = 0; i < high_.size(); ++i) {
    if (plus_one && std::isfinite(high_[i])) {
      const DoubleDouble sum = DoubleDouble{1} + DoubleDouble{high_[i], low_[i]};
      high_[i] = sum.high;
      low_[i] = sum.low;
    }
    max_abs_ = std::isfinite(high_[i]) ? std::max(max_abs_, std::fabs(high_[i]))
                                       : std::numeric_limits<double>::infinity();
  }
  uniform_ = count == 1;
  if (uniform_) {
    high_.resize(kChunk, high_[0]);
    low_.resize(kChunk, low_[0]);
  }
  high_.resize(high_.size() + kAffinePadding);
  low_.resize(low_.size() + kAffinePadding);
}

}  // namespace lnorm
