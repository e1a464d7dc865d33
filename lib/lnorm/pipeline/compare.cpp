#include "lnorm/pipeline/compare.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "lnorm/core/chunk.hpp"

namespace lnorm {

namespace {

// One of the two sides, a block at a time and in that a chunk at a time.
class Side {
 public:
  explicit Side(TensorSource& source)
      : source_(source), item_(static_cast<std::int64_t>(item_size(source.info().dtype))) {}

  void read_block(std::int64_t elements) {
    source_.read(block_, static_cast<std::size_t>(elements * item_));
  }

  // start: within the block.
  const Chunk& load_chunk(std::int64_t start, std::int64_t count) {
    const TensorInfo& info = source_.info();
    load(block_.data() + start * item_, info.dtype, info.byte_order, count, *chunk_);
    return *chunk_;
  }

 private:
  TensorSource& source_;
  std::int64_t item_;
  std::vector<std::byte> block_;
  std::unique_ptr<Chunk> chunk_ = std::make_unique<Chunk>();
};

}  // namespace

Comparison compare(TensorSource& actual, TensorSource& expected, const Tolerance& tolerance,
                   std::size_t max_mismatches, const Progress& progress) {
  constexpr std::int64_t kBlock = 32 * kChunk;
  Comparison result;
  result.actual = actual.info();
  result.expected = expected.info();
  result.tolerance = tolerance;
  result.same_shape = actual.info().shape == expected.info().shape;
  if (!result.same_shape) return result;
  const std::int64_t elements = element_count(actual.info().shape);
  Side actual_side(actual);
  Side expected_side(expected);
  while (result.elements < elements) {
    const std::int64_t block = std::min(kBlock, elements - result.elements);
    actual_side.read_block(block);
    expected_side.read_block(block);
    for (std::int64_t start = 0; start < block; start += kChunk) {
      const std::int64_t count = std::min(kChunk, block - start);
      compare_elements(actual_side.load_chunk(start, count), expected_side.load_chunk(start, count),
                       count, max_mismatches, result);
    }
    if (progress) progress(result.elements);
  }
  actual.finish();
  expected.finish();
  return result;
}

}  // namespace lnorm
