#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"

namespace lnorm {

// Elements are read as they lie in the file: any dtype, either byte order, any alignment.
struct RowsIn {
  const std::byte* data;
  DType dtype;
  std::endian byte_order;
  std::int64_t rows;
  std::int64_t row_length;
  std::int64_t to_next = 0;    // bytes from here to what will be read next, where that is known
  std::int64_t first_row = 0;  // the number of the first one in its tensor
};

// Results are written in native byte order, as a float dtype; any alignment.
struct RowsOut {
  std::byte* data;
  DType dtype;
  bool non_temporal = false;  // a kernel may write past the caches, which cannot hold so much
  bool saturates = false;     // what is beyond the greatest number, infinity as well, becomes that
};

// Output larger than the second-level cache is evicted before it is read: it is written past the caches.
inline bool goes_past_caches(const RowsIn& x, const RowsOut& y) noexcept {
  constexpr std::int64_t kPastCaches = std::int64_t{4} << 20;
  return x.rows * x.row_length * static_cast<std::int64_t>(item_size(y.dtype)) >= kPastCaches;
}

// One row, again and again: calls see(part) for the parts that make it up.
using ReadRow = std::function<void(const std::function<void(const RowsIn& part)>& see)>;

// Whether elements can be loaded as this dtype from where they lie.
inline bool is_native(const RowsIn& x, DType dtype) noexcept {
  return x.dtype == dtype && x.byte_order == std::endian::native;
}

// Rows first to first + count of x.
inline RowsIn rows_from(const RowsIn& x, std::int64_t first, std::int64_t count) noexcept {
  const std::int64_t size = x.row_length * static_cast<std::int64_t>(item_size(x.dtype));
  return {x.data + first * size, x.dtype, x.byte_order,       count,
          x.row_length,          0,       x.first_row + first};
}

// Row r of x alone.
inline RowsIn row_of(const RowsIn& x, std::int64_t r) noexcept { return rows_from(x, r, 1); }

// Row r of y, whose rows are of row_length elements.
inline RowsOut row_of(const RowsOut& y, std::int64_t row_length, std::int64_t r) noexcept {
  return {y.data + r * row_length * static_cast<std::int64_t>(item_size(y.dtype)), y.dtype,
          y.non_temporal, y.saturates};
}

// Elements first to first + count of the one row of x.
inline RowsIn part_of(const RowsIn& row, std::int64_t first, std::int64_t count) noexcept {
  if (first == 0 && count == row.row_length) return row;
  const auto size = static_cast<std::int64_t>(item_size(row.dtype));
  return {row.data + first * size, row.dtype, row.byte_order, 1, count, row.to_next, row.first_row};
}

// Decodes the chunk of the one row of x that begins at start. Returns the number of its elements.
inline std::int64_t load_chunk(const RowsIn& row, std::int64_t start, Chunk& chunk) noexcept {
  const std::int64_t n = std::min(kChunk, row.row_length - start);
  load(part_of(row, start, n).data, row.dtype, row.byte_order, n, chunk);
  return n;
}

// Calls see(i, x) for every element of the one row.
template <class See>
void for_each_element(const RowsIn& row, See see) {
  Chunk chunk;
  std::fill_n(chunk.low, std::min(kChunk, row.row_length), 0.0);
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = load_chunk(row, start, chunk);
    for (std::int64_t i = 0; i < n; ++i) see(start + i, Number{chunk.high[i], chunk.low[i]});
  }
}

// A number times 2^exponent, of any exponent, rounded where it is below the normal doubles.
inline double times_power(double number, int exponent) noexcept {
  return number * std::ldexp(1, exponent / 2) * std::ldexp(1, exponent - exponent / 2);
}

// The one row as float64 in the buffer, without low parts, its elements times 2^exponent.
inline RowsIn times_power(const RowsIn& row, int exponent, std::vector<double>& buffer) {
  buffer.reserve(static_cast<std::size_t>(row.row_length));
  for_each_element(
      row, [&](std::int64_t, Number x) { buffer.push_back(times_power(x.high, exponent)); });
  return {reinterpret_cast<const std::byte*>(buffer.data()), DType::float64, std::endian::native, 1,
          row.row_length};
}

// Encodes count results where the one row of y has its element first and those after it.
inline void store(const double* from, std::int64_t count, const RowsOut& y,
                  std::int64_t first) noexcept {
  store(from, count, y.dtype, row_of(y, 1, first).data, y.saturates);
}

// Writes result_of(i, x) for every element of the one row of x; y may be where x is.
template <class ResultOf>
void write_each(const RowsIn& x, const RowsOut& y, ResultOf result_of) {
  Chunk chunk;
  std::fill_n(chunk.low, std::min(kChunk, x.row_length), 0.0);
  for (std::int64_t start = 0; start < x.row_length; start += kChunk) {
    const std::int64_t n = load_chunk(x, start, chunk);
    for (std::int64_t i = 0; i < n; ++i) {
      chunk.high[i] = result_of(start + i, Number{chunk.high[i], chunk.low[i]});
    }
    store(chunk.high, n, y, start);
  }
}

// Encodes one number for all of them.
inline void fill(const RowsOut& y, std::int64_t count, double value) noexcept {
  if (count == 0) return;
  store(&value, 1, y, 0);
  const auto size = static_cast<std::int64_t>(item_size(y.dtype));
  for (std::int64_t done = 1; done < count; done *= 2) {
    std::memcpy(y.data + done * size, y.data,
                static_cast<std::size_t>(std::min(done, count - done) * size));
  }
}

// Element i of the one row of x.
inline Number element_of(const RowsIn& row, std::int64_t i) noexcept {
  Chunk chunk;
  chunk.low[0] = 0;
  load_chunk(part_of(row, i, 1), 0, chunk);
  return {chunk.high[0], chunk.low[0]};
}

}  // namespace lnorm
