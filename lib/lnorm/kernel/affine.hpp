#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lnorm/core/tensor_info.hpp"

namespace lnorm {

inline constexpr std::size_t kAffinePadding = 64;

// weight or bias, in the form that kernels want it: exact pairs of doubles, one for every element
// of a row, or one value for all of them.
class AffineTerm {
 public:
  AffineTerm() = default;

  // elements: native byte order or not, as info says; a single element stands for the whole row.
  // plus_one: the term is 1 + element (zero-centred weight).
  AffineTerm(const TensorInfo& info, const std::vector<std::byte>& elements, bool plus_one);

  bool empty() const noexcept { return high_.empty(); }

  // The elements at and after index, up to the end of the chunk that index begins; the last chunk
  // goes on for another kAffinePadding zeros, for who reads them in groups.
  const double* high(std::int64_t index) const noexcept { return high_.data() + offset(index); }
  const double* low(std::int64_t index) const noexcept { return low_.data() + offset(index); }

  // The largest |element|; infinity if one is not finite.
  double max_abs() const noexcept { return max_abs_; }
  bool finite() const noexcept { return std::isfinite(max_abs_); }

 private:
  std::int64_t offset(std::int64_t index) const noexcept { return uniform_ ? 0 : index; }

  std::vector<double> high_;
  std::vector<double> low_;
  bool uniform_ = true;  // one value for every element
  double max_abs_ = 0;
};

struct Affine {
  AffineTerm weight;  // empty: 1
  AffineTerm bias;    // empty: 0

  bool finite() const noexcept { return weight.finite() && bias.finite(); }
};

}  // namespace lnorm
