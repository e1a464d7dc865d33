#include "lnorm/pipeline/compare.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/pipeline/mismatched_rows.hpp"

namespace lnorm {

namespace {

// One of the two sides of a block: read whole, decoded a chunk at a time.
class Side {
 public:
  // In order.
  void begin(TensorSource& source, std::int64_t first, std::int64_t count) {
    const auto item = static_cast<std::int64_t>(item_size(source.info().dtype));
    position_ = first * item;
    const auto bytes = static_cast<std::size_t>(count * item);
    if (source.has_positions()) {
      elements_.resize(bytes);
    } else {
      source.read(elements_, bytes);
    }
  }

  // On any thread.
  void read(const TensorSource& source) {
    if (source.has_positions()) source.read_at(position_, elements_);
  }

  // start: within the block.
  const Chunk& load_chunk(const TensorInfo& info, std::int64_t start, std::int64_t count) {
    const auto item = static_cast<std::int64_t>(item_size(info.dtype));
    load(elements_.data() + start * item, info.dtype, info.byte_order, count, *chunk_);
    return *chunk_;
  }

 private:
  std::int64_t position_ = 0;
  std::vector<std::byte> elements_;
  std::unique_ptr<Chunk> chunk_ = std::make_unique<Chunk>();
};

struct Slot {
  Side actual;
  Side expected;
  std::int64_t count = 0;
  Comparison found;
};

}  // namespace

Crew crew_of_comparison(const TensorInfo& actual, int threads) {
  return {threads, (element_count(actual.shape) + kComparedElements - 1) / kComparedElements};
}

Comparison compare(TensorSource& actual, TensorSource& expected, const Tolerance& tolerance,
                   std::size_t max_mismatches, const RunOptions& options,
                   const std::optional<Axes>& row_axes) {
  Comparison result;
  result.actual = actual.info();
  result.expected = expected.info();
  result.tolerance = tolerance;
  result.same_shape = actual.info().shape == expected.info().shape;
  if (!result.same_shape) return result;
  std::optional<RowCounter> rows;
  if (row_axes) rows.emplace(actual.info().shape, *row_axes);
  const std::size_t max_kept = rows ? static_cast<std::size_t>(kComparedElements) : max_mismatches;
  const std::int64_t elements = element_count(actual.info().shape);
  const std::int64_t blocks = (elements + kComparedElements - 1) / kComparedElements;
  const Crew crew = crew_of_comparison(actual.info(), options.threads);
  std::vector<Slot> slots(crew.slots());
  for (Slot& slot : slots) slot.found = result;
  const auto begin = [&](std::int64_t block, std::size_t s) {
    Slot& slot = slots[s];
    const std::int64_t first = block * kComparedElements;
    slot.count = std::min(kComparedElements, elements - first);
    slot.actual.begin(actual, first, slot.count);
    slot.expected.begin(expected, first, slot.count);
    slot.found.clear(first);
  };
  const auto work = [&](std::int64_t, std::size_t s) {
    Slot& slot = slots[s];
    slot.actual.read(actual);
    slot.expected.read(expected);
    for (std::int64_t start = 0; start < slot.count; start += kChunk) {
      const std::int64_t count = std::min(kChunk, slot.count - start);
      compare_elements(slot.actual.load_chunk(actual.info(), start, count),
                       slot.expected.load_chunk(expected.info(), start, count), count, max_kept,
                       slot.found);
    }
  };
  const auto end = [&](std::int64_t, std::size_t s) {
    result.append(slots[s].found, max_mismatches);
    if (rows) {
      for (const ElementPair& pair : slots[s].found.first_mismatches) rows->add(pair.position);
    }
    if (options.progress) options.progress(result.elements);
  };
  crew.run(blocks, begin, work, end);
  if (rows) result.rows = rows->result();
  actual.finish();
  expected.finish();
  return result;
}

}  // namespace lnorm
