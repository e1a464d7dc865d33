#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

inline constexpr std::size_t kAffinePadding = 64;

// Which number of weight and bias an element has: element i of a row, number first(row) + i / repeat. By default all rows have
// the same numbers, one an element.
struct AffineLayout {
  // One along which rows are numbered.
  struct RowAxis {
    std::int64_t step;  // from one index to the next, in rows
    std::int64_t extent;
    std::int64_t stride;  // the same in numbers

    bool operator==(const RowAxis&) const = default;
  };

  Shape shape;  // of weight and bias, unless they have no dimensions
  Axes order;   // its axes as the numbers are held, the last one fastest
  Shape spread =
      {};  // extents of further axes, counted after those of the shape: along these numbers are repeated
  std::int64_t copies = 1;         // of each number, which follow each other
  std::vector<RowAxis> rows = {};  // none: all rows have the same numbers
  std::int64_t first_row = 0;      // is row 0
  std::int64_t repeat = 1;         // elements of a row that follow each other and have one number

  std::int64_t first(std::int64_t row) const noexcept {
    std::int64_t number = 0;
    for (const RowAxis& axis : rows) {
      number += (row + first_row) / axis.step % axis.extent * axis.stride;
    }
    return number;
  }
  std::int64_t number(std::int64_t first, std::int64_t i) const noexcept {
    return first + (repeat == 1 ? i : i / repeat);
  }
  bool is_plain() const noexcept { return rows.empty() && repeat == 1; }
  // Whether the numbers are held in the order of their shape.
  bool is_in_order() const { return spread.empty() && std::is_sorted(order.begin(), order.end()); }

  // The elements from i up to the next number, or up to end, if that comes before.
  std::int64_t run(std::int64_t i, std::int64_t end) const noexcept {
    return repeat == 1 ? end - i : std::min(end - i, repeat - i % repeat);
  }

  bool operator==(const AffineLayout&) const = default;
};

// Numbers in the order of a layout, without copies, in that of its shape.
std::vector<double> in_tensor_order(std::vector<double> numbers, const AffineLayout& layout);

// One number for every element of a row, or one for all of them. What is read at and after an index goes on
// to the end of the chunk that the index begins; the last chunk is followed by kAffinePadding zeros, for those
// who read in groups. Copies share the numbers.
template <class T>
class RowOf {
 public:
  RowOf() = default;
  // A single number stands for the whole row.
  explicit RowOf(std::vector<T> numbers) : uniform_(numbers.size() == 1) {
    if (uniform_) numbers.resize(kChunk, numbers[0]);
    numbers.resize(numbers.size() + kAffinePadding);
    numbers_ = std::make_shared<const std::vector<T>>(std::move(numbers));
    first_ = numbers_->data();
  }

  bool empty() const noexcept { return first_ == nullptr; }
  // 1 where one number stands for all.
  std::size_t size() const noexcept {
    return empty() || uniform_ ? !empty() : numbers_->size() - kAffinePadding;
  }
  const T* at(std::int64_t index) const noexcept { return first_ + (uniform_ ? 0 : index); }

 private:
  std::shared_ptr<const std::vector<T>> numbers_;
  const T* first_ = nullptr;
  bool uniform_ = true;
};
using RowOfNumbers = RowOf<double>;

// weight or bias: high + low, where low is 0 as a rule. Exactly, unless it is scaled.
class AffineTerm {
 public:
  AffineTerm() = default;

  // elements: native byte order or not, as info says; a single element stands for the whole row.
  // plus_one: the term is 1 + element (zero-centered weight).
  AffineTerm(const TensorInfo& info, const std::vector<std::byte>& elements, bool plus_one);

  // low may be empty: all of its numbers are 0.
  AffineTerm(std::vector<double> high, std::vector<double> low);

  // The numbers as a layout has them. Of a single one there is nothing to lay out.
  AffineTerm laid_out(const AffineLayout& layout) const;

  // All of them, without low parts; one where it is the same for all elements.
  std::vector<double> numbers() const;

  // One of them, for all elements.
  AffineTerm alone(std::int64_t index) const;

  bool empty() const noexcept { return high_.empty(); }
  std::size_t size() const noexcept { return high_.size(); }      // 1 where all are the same
  bool is_uniform() const noexcept { return high_.size() <= 1; }  // the same for all elements
  const double* high(std::int64_t index) const noexcept { return high_.at(index); }
  // Null where all of them are 0.
  const double* low(std::int64_t index) const noexcept {
    return low_.empty() ? nullptr : low_.at(index);
  }
  bool has_low_parts() const noexcept { return !low_.empty(); }
  Number number(std::int64_t index) const noexcept {
    return {*high(index), low_.empty() ? 0 : *low(index)};
  }
  double high_or(double otherwise, std::int64_t index) const noexcept {
    return empty() ? otherwise : *high(index);
  }
  Number number_or(double otherwise, std::int64_t index) const noexcept {
    return empty() ? Number{otherwise} : number(index);
  }

  // The largest |element|; infinity if one is not finite. The smallest one that is not 0; infinity if none is.
  double max_abs() const noexcept { return max_abs_; }

  // Of what they were read from.
  DType dtype() const noexcept { return dtype_; }

  // How many bits the longest of them has; low parts do not count.
  int precision() const noexcept { return precision_; }

  // Whether all of them are 0, or from 1/most to most in size. So is what is empty.
  bool is_within(double most) const noexcept {
    return empty() || (max_abs_ <= most && min_abs_ >= 1 / most);
  }

 private:
  friend class Affine;

  // Each times scale, within 3 u^2 of itself; exact where it has no low part. What is not 0 and not from 2^-400 to 2^400
  // becomes the smallest double, or infinity, which no bound of is_within() admits.
  AffineTerm scaled(double scale) const;

  RowOfNumbers high_;
  RowOfNumbers low_;
  double max_abs_ = 0;
  double min_abs_ = INFINITY;
  int precision_ = 0;
  DType dtype_ = DType::float64;
};

// What follows on a result that is rounded: it is multiplied by weight, bias is added, and that is rounded once.
// Empty: 1 and 0.
struct AffineStep {
  AffineTerm weight;
  AffineTerm bias;
};

// weight and bias; empty: 1 and 0. They are scaled: y = (xhat * weight + bias) * scale.
class Affine {
 public:
  Affine() = default;
  Affine(AffineTerm weight, AffineTerm bias, const Rounding& rounding = {});
  // scale is finite.
  Affine(AffineTerm weight, AffineTerm bias, double scale);

  // How the terms are laid out. Those of one number, or none, need no layout.
  const AffineLayout& layout() const noexcept { return layout_; }
  void set_layout(const AffineLayout& layout) { layout_ = layout; }

  // What comes before the first rounding.
  const AffineTerm& weight() const noexcept { return weight_; }
  const AffineTerm& bias() const noexcept { return bias_; }

  // What comes after it, one after another.
  std::span<const AffineStep> steps() const noexcept { return steps_; }

  // Takes the last step away: what it multiplies by and adds, and which layout that has.
  Affine take_last_step();

  // What they are exactly is what these are, times scale.
  double scale() const noexcept { return scale_; }
  const AffineTerm& unscaled_weight() const noexcept {
    return scale_ == 1 ? weight_ : unscaled_weight_;
  }
  const AffineTerm& unscaled_bias() const noexcept { return scale_ == 1 ? bias_ : unscaled_bias_; }

  // Whether all of weight() and bias() are 0, or from 1/most to most in size.
  bool is_within(double most) const noexcept {
    return weight_.is_within(most) && bias_.is_within(most);
  }

  // bias -+ 4 u |bias|, the other way around where weight is negative: what is added to the two bounds of a
  // product with weight for the bounds of the sum (statistics.hpp). Where there is a bias.
  const double* bias_with_lower(std::int64_t index) const noexcept { return with_lower_.at(index); }
  const double* bias_with_upper(std::int64_t index) const noexcept { return with_upper_.at(index); }

  // Whether weight and bias, where there are any, are held as floats, too, each rounded. Long ones are not, for the memory.
  bool have_floats() const noexcept {
    return weight_.empty() == weight_floats_.empty() && bias_.empty() == bias_floats_.empty();
  }
  const float* weight_floats(std::int64_t index) const noexcept { return weight_floats_.at(index); }
  const float* bias_floats(std::int64_t index) const noexcept { return bias_floats_.at(index); }

 private:
  void find_bounds();

  AffineLayout layout_;
  double scale_ = 1;
  AffineTerm weight_;
  AffineTerm bias_;
  std::vector<AffineStep> steps_;
  AffineTerm unscaled_weight_;  // where scale_ is not 1, as the next one
  AffineTerm unscaled_bias_;
  RowOfNumbers with_lower_;
  RowOfNumbers with_upper_;
  RowOf<float> weight_floats_;
  RowOf<float> bias_floats_;
};

}  // namespace lnorm
