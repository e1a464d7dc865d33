#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/statistics.hpp"

// What the backward pass of layer normalization is made of: kernel/backward.hpp defines it.
namespace lnorm {

// What is the same for all rows of a tensor.
struct GradientSetting {
  const Backend& backend;
  DType x;
  DType dy;
  DType dx;
  std::int64_t row_length;
  const AffineTerm& weight;  // empty: 1
  Formula formula;
  bool needs_double_doubles = false;  // as long rows do: rows start there
  bool wants_dx = true;               // or else x-hat alone
  bool is_scaled = false;             // of a row that another one has brought into range
};

// A row, or a part of it.
struct GradientPart {
  RowsIn x;
  RowsIn dy;
  std::int64_t offset = 0;  // where in the row it begins
};

// Over a row or a part of it, d = x - center, g = dy * weight.
struct GradientSums {
  Sums x;
  DoubleDouble g{};      // of g
  DoubleDouble gx{};     // of g * d
  double g_squares = 0;  // of g^2, for bounds

  GradientSums& operator+=(const GradientSums& other) noexcept {
    x += other.x;
    g = g + other.g;
    gx = gx + other.gx;
    g_squares += other.g_squares;
    return *this;
  }

  // Of norms without a mean.
  void drop_means() noexcept {
    x.drop_means();
    g = {};
  }
};

// Calls see(i, x, dy) for every pair of elements of a part.
template <class See>
void for_each_element(const GradientPart& part, See see) {
  Chunk x;
  std::fill_n(x.low, std::min(kChunk, part.x.row_length), 0.0);
  for_each_element(part.dy, [&](std::int64_t i, Number dy) {
    const std::int64_t at = i % kChunk;
    if (at == 0) load_chunk(part.x, i, x);
    see(i, Number{x.high[at], x.low[at]}, dy);
  });
}

// Calls see(part) for parts that make up the row, in any order.
using ReadGradientRow =
    std::function<void(const std::function<void(const GradientPart& part)>& see)>;

}  // namespace lnorm
