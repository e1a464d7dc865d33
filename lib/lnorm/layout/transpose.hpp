#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace lnorm {

// Items of 1, 2, 4 or 8 bytes as 16-byte vectors, which every 64-bit machine has.
template <class T>
struct ItemVectors {
  static constexpr std::int64_t kCount = 16 / sizeof(T);
  using Vector [[gnu::vector_size(16)]] = T;

  // The first (half 0), or last (half 1), halves of a and b, item by item in turns.
  template <std::size_t half, std::size_t... i>
  static Vector interleave(Vector a, Vector b, std::index_sequence<i...>) {
    return __builtin_shufflevector(a, b, ((i + half * sizeof...(i)) / 2 + i % 2 * sizeof...(i))...);
  }

  // A square of kCount vectors. Each round interleaves the first half of them with the last.
  static void transpose(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride) {
    constexpr std::make_index_sequence<kCount> kAll;
    Vector vectors[kCount];
    for (std::int64_t i = 0; i < kCount; ++i) {
      std::memcpy(&vectors[i], from + i * from_stride, sizeof(Vector));
    }
    for (std::int64_t round = 1; round < kCount; round *= 2) {
      Vector next[kCount];
      for (std::int64_t i = 0; i < kCount / 2; ++i) {
        next[2 * i] = interleave<0>(vectors[i], vectors[i + kCount / 2], kAll);
        next[2 * i + 1] = interleave<1>(vectors[i], vectors[i + kCount / 2], kAll);
      }
      std::memcpy(vectors, next, sizeof(vectors));
    }
    for (std::int64_t i = 0; i < kCount; ++i) {
      std::memcpy(to + i * to_stride, &vectors[i], sizeof(Vector));
    }
  }
};

// to[i * to_stride + j] = from[i + j * from_stride] for all i below rows and j below columns. Items have 1, 2, 4, 8 or
// 16 bytes. from and to must not overlap.
template <class T>
void transpose(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t columns) {
  const auto one_by_one = [&](std::int64_t i0, std::int64_t i1, std::int64_t j0, std::int64_t j1) {
    for (std::int64_t i = i0; i < i1; ++i) {
      for (std::int64_t j = j0; j < j1; ++j) to[i * to_stride + j] = from[i + j * from_stride];
    }
  };
  const auto block = [&](std::int64_t i0, std::int64_t i1, std::int64_t j0, std::int64_t j1) {
    if constexpr (sizeof(T) < 16) {
      constexpr std::int64_t kSide = ItemVectors<T>::kCount;
      for (; i0 + kSide <= i1; i0 += kSide) {
        std::int64_t j = j0;
        for (; j + kSide <= j1; j += kSide) {
          ItemVectors<T>::transpose(from + i0 + j * from_stride, from_stride,
                                    to + i0 * to_stride + j, to_stride);
        }
        one_by_one(i0, i0 + kSide, j, j1);
      }
    }
    one_by_one(i0, i1, j0, j1);
  };
  // Squares of a cache line: it is used up before it is evicted.
  constexpr std::int64_t kLine = 64 / sizeof(T);
  for (std::int64_t i = 0; i < rows; i += kLine) {
    for (std::int64_t j = 0; j < columns; j += kLine) {
      block(i, std::min(rows, i + kLine), j, std::min(columns, j + kLine));
    }
  }
}

}  // namespace lnorm
