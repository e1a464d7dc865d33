#include "lnorm/kernel/affine.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <utility>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/double_double.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

namespace {

// From the first bit of a normal double to the last one that is set.
int precision_of(double value) {
  constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;
  return 53 - std::countr_zero(std::bit_cast<std::uint64_t>(value) | kHidden);
}

// Calls see(place) for the numbers in the layout's order: where each is in that of the shape.
template <class See>
void for_each_place(const AffineLayout& layout, See see) {
  Shape extents = layout.shape;
  Shape strides(extents.size(), 1);
  for (std::size_t axis = extents.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * extents[axis];
  }
  extents.insert(extents.end(), layout.spread.begin(), layout.spread.end());
  strides.resize(extents.size());
  Shape index(extents.size());  // along the axes in their order
  const std::int64_t count = element_count(extents);
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < index.size(); ++i) place += index[i] * strides[layout.order[i]];
    see(place);
    for (std::size_t i = index.size(); i-- > 0;) {
      if (++index[i] < extents[layout.order[i]]) break;
      index[i] = 0;
    }
  }
}

// Empty where a number is beyond the range of floats, or there are too many.
RowOf<float> rounded_to_floats(const AffineTerm& term) {
  constexpr std::size_t kMost = std::size_t{1} << 16;
  if (term.empty() || term.size() > kMost || !term.is_within(kMaxDoubleAffine)) return {};
  std::vector<float> floats;
  for (const double number : term.numbers()) floats.push_back(static_cast<float>(number));
  return RowOf(std::move(floats));
}

}  // namespace

AffineTerm::AffineTerm(const TensorInfo& info, const std::vector<std::byte>& elements,
                       bool plus_one) {
  const std::size_t count = elements.size() / item_size(info.dtype);
  std::vector<double> high(count);
  std::vector<double> low(has_low(info.dtype) || plus_one ? count : 0);
  const RowsIn row{elements.data(), info.dtype, info.byte_order, 1,
                   static_cast<std::int64_t>(count)};
  for_each_element(row, [&](std::int64_t i, Number x) {
    DoubleDouble term{x.high, x.low};
    if (plus_one && std::isfinite(x.high)) term = DoubleDouble{1} + term;
    high[static_cast<std::size_t>(i)] = term.high;
    if (!low.empty()) low[static_cast<std::size_t>(i)] = term.low;
  });
  *this = AffineTerm(std::move(high), std::move(low));
  dtype_ = info.dtype;
}

AffineTerm::AffineTerm(std::vector<double> high, std::vector<double> low) {
  bool has_lows = false;
  for (std::size_t i = 0; i < high.size(); ++i) {
    high[i] += 0.0;  // of a zero the sign does not count
    has_lows = has_lows || (!low.empty() && low[i] != 0);
    const double size_of = std::isfinite(high[i]) ? std::fabs(high[i]) : kInfinity;
    max_abs_ = std::max(max_abs_, size_of);
    if (size_of > 0) min_abs_ = std::min(min_abs_, size_of);
    precision_ = std::max(precision_, precision_of(high[i]));
  }
  high_ = RowOfNumbers(std::move(high));
  if (has_lows) low_ = RowOfNumbers(std::move(low));
}

std::vector<double> in_tensor_order(std::vector<double> numbers, const AffineLayout& layout) {
  if (layout.is_in_order() || numbers.empty()) return numbers;
  std::vector<double> result(numbers.size());
  for_each_place(layout, [&, next = numbers.begin()](std::int64_t place) mutable {
    result[static_cast<std::size_t>(place)] = *next++;
  });
  return result;
}

AffineTerm AffineTerm::laid_out(const AffineLayout& layout) const {
  if (high_.size() <= 1 || (layout.is_in_order() && layout.copies == 1)) return *this;
  std::vector<double> high;
  std::vector<double> low;
  high.reserve(high_.size() * static_cast<std::size_t>(layout.copies));
  if (has_low_parts()) low.reserve(high.capacity());
  for_each_place(layout, [&](std::int64_t place) {
    const Number number = this->number(place);
    high.insert(high.end(), static_cast<std::size_t>(layout.copies), number.high);
    if (has_low_parts()) low.insert(low.end(), static_cast<std::size_t>(layout.copies), number.low);
  });
  AffineTerm result(std::move(high), std::move(low));
  result.dtype_ = dtype_;
  return result;
}

std::vector<double> AffineTerm::numbers() const {
  if (empty()) return {};
  return {high_.at(0), high_.at(0) + high_.size()};
}

AffineTerm AffineTerm::alone(std::int64_t index) const {
  if (empty()) return {};
  const Number one = number(index);
  return {{one.high}, {one.low}};
}

AffineTerm AffineTerm::scaled(double scale) const {
  std::vector<double> high(high_.size());
  std::vector<double> low(low_.empty() ? 0 : high.size());
  int scale_exponent = 0;
  const double factor = std::frexp(scale, &scale_exponent);
  for (std::size_t i = 0; i < high.size(); ++i) {
    const Number number = this->number(static_cast<std::int64_t>(i));
    high[i] = number.high * scale;
    if (number.high == 0 || scale == 0 || !std::isfinite(number.high)) continue;
    // Near 1, where products lose nothing.
    int exponent = 0;
    const double leading = std::frexp(number.high, &exponent);
    const DoubleDouble product = DoubleDouble{leading, std::ldexp(number.low, -exponent)} * factor;
    exponent += scale_exponent;
    if (std::abs(exponent) > 400) {
      double size = kInfinity;
      if (exponent < 0) size = std::numeric_limits<double>::denorm_min();
      high[i] = std::copysign(size, product.high);
      continue;
    }
    high[i] = std::ldexp(product.high, exponent);
    const double rest = std::ldexp(product.low, exponent);
    if (rest != 0) low.resize(high.size());
    if (!low.empty()) low[i] = rest;
  }
  return {std::move(high), std::move(low)};
}

Affine::Affine(AffineTerm weight, AffineTerm bias, const Rounding& rounding)
    : weight_(std::move(weight)), bias_(std::move(bias)) {
  const auto add_step = [&](AffineStep step) {
    if (!step.weight.empty() || !step.bias.empty()) steps_.push_back(std::move(step));
  };
  if (rounding.xhat) {
    add_step(
        {std::exchange(weight_, {}), rounding.product ? AffineTerm() : std::exchange(bias_, {})});
  }
  if (rounding.product) add_step({{}, std::exchange(bias_, {})});
  find_bounds();
}

Affine::Affine(AffineTerm weight, AffineTerm bias, double scale)
    : scale_(scale), weight_(std::move(weight)), bias_(std::move(bias)) {
  if (scale_ != 1) {
    const AffineTerm one({1}, {});
    unscaled_weight_ = std::exchange(weight_, (weight_.empty() ? one : weight_).scaled(scale_));
    unscaled_bias_ = std::exchange(bias_, bias_.empty() ? AffineTerm() : bias_.scaled(scale_));
  }
  find_bounds();
}

Affine Affine::take_last_step() {
  AffineStep step = std::move(steps_.back());
  steps_.pop_back();
  Affine last(std::move(step.weight), std::move(step.bias));
  last.set_layout(layout_);
  return last;
}

void Affine::find_bounds() {
  weight_floats_ = rounded_to_floats(weight_);
  bias_floats_ = rounded_to_floats(bias_);
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

}  // namespace lnorm
