#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "lnorm/core/dtype.hpp"

namespace lnorm {

// Rows are walked in chunks of this many elements.
inline constexpr std::int64_t kChunk = 1024;

// Elements of any dtype as doubles: high + low exactly, where high is the nearest double. low is zero but for 64-bit
// integers beyond 2^53, and for pairs.
struct Chunk {
  alignas(64) double high[kChunk];
  alignas(64) double low[kChunk];
};

// Decodes count (at most kChunk) elements into high, and into low where the dtype needs it.
void load(const std::byte* from, DType dtype, std::endian byte_order, std::int64_t count,
          Chunk& to) noexcept;

// Whether load writes Chunk::low for this dtype.
bool has_low(DType dtype) noexcept;

// Encodes count doubles as a float dtype, each rounded once, every NaN as the positive quiet one. saturates: what is beyond
// the greatest number becomes that.
void store(const double* from, std::int64_t count, DType dtype, std::byte* to,
           bool saturates = false) noexcept;

}  // namespace lnorm
