#include "lnorm/kernel/convert.hpp"

#include <cstring>
#include <span>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/kernel/add.hpp"
#include "lnorm/kernel/rounding.hpp"

namespace lnorm {

void convert(const RowsIn& x, const RowsOut& y) {
  const std::int64_t count = x.rows * x.row_length;
  if (x.dtype == y.dtype) {
    const std::size_t bytes = static_cast<std::size_t>(count) * item_size(x.dtype);
    std::memcpy(y.data, x.data, bytes);
    return make_native({y.data, bytes}, y.dtype, x.byte_order);
  }
  const RowsIn row{x.data, x.dtype, x.byte_order, 1, count};
  if (is_floating(y.dtype) && !is_float8(y.dtype) && !y.saturates) return round_row(row, y);
  Chunk chunk;
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t n = load_chunk(row, start, chunk);
    for (std::int64_t i = 0; has_low(x.dtype) && i < n; ++i) {
      chunk.high[i] = rounded(DoubleDouble{chunk.high[i], chunk.low[i]}, y.dtype);
    }
    store(chunk.high, n, y, start);
  }
}

}  // namespace lnorm
