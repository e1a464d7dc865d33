#include "lnorm/kernel/add.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/kernel/dyadic.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/layer_norm.hpp"

namespace lnorm {

namespace {

// The bits that numbers of a dtype have: from 2^least up to below 2^end.
struct Places {
  int least;
  int end;
};

Places places_of(DType dtype) {
  if (is_floating(dtype)) {
    const FloatFormat format = float_format(dtype);
    return {format.least_exponent, std::ilogb(format.greatest) + 1};
  }
  return {0, dtype == DType::boolean ? 1 : static_cast<int>(8 * item_size(dtype))};
}

// high is the nearest double.
DoubleDouble pair_of(Int128 integer) noexcept {
  const auto high = static_cast<double>(integer);
  return {high, static_cast<double>(integer - static_cast<Int128>(high))};
}

double rounded_sum(Number a, Number b, DType dtype) {
  if (!std::isfinite(a.high + b.high)) return rounded(a.high + b.high, dtype);
  return rounded(Dyadic(a) + Dyadic(b), dtype);
}

// Adds rows whose elements have low parts.
void add_slowly(const RowsIn& a, const RowsIn& b, const RowsOut& sum) {
  Chunk a_chunk{};
  Chunk b_chunk{};
  const bool are_integers = !is_floating(a.dtype) && !is_floating(b.dtype);
  for (std::int64_t start = 0; start < a.row_length; start += kChunk) {
    const std::int64_t n = load_chunk(a, start, a_chunk);
    load_chunk(b, start, b_chunk);
    for (std::int64_t i = 0; i < n; ++i) {
      const Number from_a{a_chunk.high[i], a_chunk.low[i]};
      const Number from_b{b_chunk.high[i], b_chunk.low[i]};
      const RowsOut to = row_of(sum, start + i, 1);
      const DoubleDouble pair = are_integers ? pair_of(integer_of(from_a) + integer_of(from_b))
                                             : DoubleDouble{rounded_sum(from_a, from_b, sum.dtype)};
      if (sum.dtype == DType::float64_pair) {
        std::memcpy(to.data, &pair, sizeof pair);
      } else {
        const double result = rounded(pair, sum.dtype);
        store(&result, 1, sum.dtype, to.data);
      }
    }
  }
}

}  // namespace

std::optional<DType> exact_sum_dtype(DType a, DType b) noexcept {
  if (has_low(a) || has_low(b)) {
    if (is_floating(a) || is_floating(b)) return std::nullopt;
    return DType::float64_pair;
  }
  const Places of_a = places_of(a);
  const Places of_b = places_of(b);
  const int bits = std::max(of_a.end, of_b.end) + 1 - std::min(of_a.least, of_b.least);
  return bits <= 53 ? DType::float64 : DType::float64_pair;
}

void add(const RowsIn& a, const RowsIn& b, const RowsOut& sum) {
  if (has_low(a.dtype) || has_low(b.dtype)) return add_slowly(a, b, sum);
  backends().front().table->add(a, b, sum);
}

void round_row(const RowsIn& x, const RowsOut& y) { backends().front().table->round_row(x, y); }

}  // namespace lnorm
