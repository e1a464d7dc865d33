#include "lnorm/kernel/affine.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"

namespace lnorm {

RowOfNumbers::RowOfNumbers(std::vector<double> numbers) : numbers_(std::move(numbers)) {
  uniform_ = numbers_.size() == 1;
  if (uniform_) numbers_.resize(kChunk, numbers_[0]);
  numbers_.resize(numbers_.size() + kAffinePadding);
}

AffineTerm::AffineTerm(const TensorInfo& info, const std::vector<std::byte>& elements,
                       bool plus_one) {
  const auto size = static_cast<std::int64_t>(item_size(info.dtype));
  const std::int64_t count = static_cast<std::int64_t>(elements.size()) / size;
  std::vector<double> high(static_cast<std::size_t>(count));
  std::vector<double> low(has_low(info.dtype) || plus_one ? high.size() : 0);
  const auto chunk = std::make_unique<Chunk>();
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t n = std::min(kChunk, count - start);
    load(elements.data() + start * size, info.dtype, info.byte_order, n, *chunk);
    std::copy_n(chunk->high, n, high.begin() + start);
    if (has_low(info.dtype)) std::copy_n(chunk->low, n, low.begin() + start);
  }
  bool has_lows = false;
  for (std::size_t i = 0; i < high.size(); ++i) {
    if (plus_one && std::isfinite(high[i])) {
      const DoubleDouble sum = DoubleDouble{1} + DoubleDouble{high[i], low[i]};
      high[i] = sum.high;
      low[i] = sum.low;
    }
    high[i] += 0.0;  // of a zero the sign does not count
    has_lows = has_lows || (!low.empty() && low[i] != 0);
    const double size_of =
        std::isfinite(high[i]) ? std::fabs(high[i]) : std::numeric_limits<double>::infinity();
    max_abs_ = std::max(max_abs_, size_of);
    if (size_of > 0) min_abs_ = std::min(min_abs_, size_of);
  }
  high_ = RowOfNumbers(std::move(high));
  if (has_lows) low_ = RowOfNumbers(std::move(low));
}

Affine::Affine(AffineTerm weight, AffineTerm bias)
    : weight_(std::move(weight)), bias_(std::move(bias)) {
  if (bias_.empty()) return;
  constexpr double kUnits = 0x1p-51;  // 4 u
  const std::size_t count = std::max(weight_.high_.size(), bias_.high_.size());
  std::vector<double> lower(count);
  std::vector<double> upper(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const double b_high = *bias_.high(index);
    const bool turned = !weight_.empty() && *weight_.high(index) < 0;
    const double margin = kUnits * std::fabs(b_high) * (turned ? -1 : 1);
    lower[i] = b_high - margin;
    upper[i] = b_high + margin;
  }
  with_lower_ = RowOfNumbers(std::move(lower));
  with_upper_ = RowOfNumbers(std::move(upper));
}

bool Affine::is_within(double most) const noexcept {
  const auto within = [&](const AffineTerm& term) {
    return term.empty() || (term.max_abs() <= most && term.min_abs() >= 1 / most);
  };
  return within(weight_) && within(bias_);
}

}  // namespace lnorm
