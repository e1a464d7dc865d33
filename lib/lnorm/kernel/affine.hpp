#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lnorm/core/number.hpp"
#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

inline constexpr std::size_t kAffinePadding = 64;

// One number for every element of a row, or one for all of them. What is read at and after an index goes on
// to the end of the chunk that the index begins; the last chunk is followed by kAffinePadding zeros, for those
// who read in groups.
class RowOfNumbers {
 public:
  RowOfNumbers() = default;
  // A single number stands for the whole row.
  explicit RowOfNumbers(std::vector<double> numbers);

  bool empty() const noexcept { return numbers_.empty(); }
  // 1 where one number stands for all.
  std::size_t size() const noexcept {
    return numbers_.empty() || uniform_ ? !numbers_.empty() : numbers_.size() - kAffinePadding;
  }
  const double* at(std::int64_t index) const noexcept {
    return numbers_.data() + (uniform_ ? 0 : index);
  }

 private:
  std::vector<double> numbers_;
  bool uniform_ = true;
};

// weight or bias: high + low, where low is 0 as a rule. Exactly, unless it is scaled.
class AffineTerm {
 public:
  AffineTerm() = default;

  // elements: native byte order or not, as info says; a single element stands for the whole row.
  // plus_one: the term is 1 + element (zero-centered weight).
  AffineTerm(const TensorInfo& info, const std::vector<std::byte>& elements, bool plus_one);

  bool empty() const noexcept { return high_.empty(); }
  const double* high(std::int64_t index) const noexcept { return high_.at(index); }
  // Null where all of them are 0.
  const double* low(std::int64_t index) const noexcept {
    return low_.empty() ? nullptr : low_.at(index);
  }
  Number number(std::int64_t index) const noexcept {
    return {*high(index), low_.empty() ? 0 : *low(index)};
  }
  Number number_or(double otherwise, std::int64_t index) const noexcept {
    return empty() ? Number{otherwise} : number(index);
  }

  // The largest |element|; infinity if one is not finite. The smallest one that is not 0; infinity if none is.
  double max_abs() const noexcept { return max_abs_; }
  double min_abs() const noexcept { return min_abs_; }

 private:
  friend class Affine;

  // high_ and low_ are known, low_ unless all of them are 0.
  void take(std::vector<double> high, std::vector<double> low);
  // Each times scale, within 3 u^2 of itself; exact where it has no low part. What is not 0 and not from 2^-400 to 2^400
  // becomes the smallest double, or infinity, which no bound of is_within() admits.
  AffineTerm scaled(double scale) const;

  RowOfNumbers high_;
  RowOfNumbers low_;
  double max_abs_ = 0;
  double min_abs_ = INFINITY;
};

// weight and bias; empty: 1 and 0. They are scaled: y = (xhat * weight + bias) * scale.
class Affine {
 public:
  Affine() = default;
  // scale is finite.
  Affine(AffineTerm weight, AffineTerm bias, double scale = 1);

  const AffineTerm& weight() const noexcept { return weight_; }
  const AffineTerm& bias() const noexcept { return bias_; }

  // What they are exactly is what these are, times scale.
  double scale() const noexcept { return scale_; }
  const AffineTerm& unscaled_weight() const noexcept {
    return scale_ == 1 ? weight_ : unscaled_weight_;
  }
  const AffineTerm& unscaled_bias() const noexcept { return scale_ == 1 ? bias_ : unscaled_bias_; }

  // Whether all of weight and bias are 0, or from 1/most to most in size.
  bool is_within(double most) const noexcept;

  // bias -+ 4 u |bias|, the other way around where weight is negative: what is added to the two bounds of a
  // product with weight for the bounds of the sum (statistics.hpp). Where there is a bias.
  const double* bias_with_lower(std::int64_t index) const noexcept { return with_lower_.at(index); }
  const double* bias_with_upper(std::int64_t index) const noexcept { return with_upper_.at(index); }

 private:
  double scale_ = 1;
  AffineTerm weight_;
  AffineTerm bias_;
  AffineTerm unscaled_weight_;  // where scale_ is not 1, as the next one
  AffineTerm unscaled_bias_;
  RowOfNumbers with_lower_;
  RowOfNumbers with_upper_;
};

}  // namespace lnorm
