#include "lnorm/pipeline/compare.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/layout/row_source.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

namespace {

// One of the two sides of a block: read whole, decoded a chunk at a time.
struct Side {
  std::vector<std::byte> elements;
  std::vector<std::byte> packed;
  std::unique_ptr<Chunk> chunk = std::make_unique<Chunk>();

  // start: within the block.
  const Chunk& load_chunk(const TensorInfo& info, std::int64_t start, std::int64_t count) {
    const auto item = static_cast<std::int64_t>(item_size(info.dtype));
    load(elements.data() + start * item, info.dtype, info.byte_order, count, *chunk);
    return *chunk;
  }
};

// All elements as one row, in C order.
RowSource elements_of(TensorSource& source, const RunOptions& options) {
  const TensorInfo& info = source.info();
  const Passage passage = make_c_order_plan(info);
  const MemoryOrder order = passage.transposes ? MemoryOrder::c : info.order;
  return {source, RowView::one_row(info.shape, order), passage, for_each_tile(options.threads)};
}

struct Slot {
  Side actual;
  Side expected;
  Tile tile{};
  Comparison found;
};

// Counts the rows that have mismatches. It takes a bit a row, once there is a mismatch.
class RowCounter {
 public:
  // axes: along which rows go.
  RowCounter(const Shape& shape, const Axes& axes)
      : shape_(shape), row_strides_(shape.size()), row_shape_(row_shape(shape, axes)) {
    found_.axes = axes;
    found_.rows = element_count(row_shape_);
    if (found_.rows == 0) return;  // strides might be too large, and none is needed
    const Axes kept = kept_axes(shape, axes);
    const auto row_strides = strides(row_shape_, MemoryOrder::c);
    for (std::size_t i = 0; i < kept.size(); ++i) row_strides_[kept[i]] = row_strides[i];
  }

  // The position of an element, in C order, that does not pass.
  void add(std::int64_t position) {
    std::int64_t row = 0;
    for (std::size_t axis = shape_.size(); axis-- > 0; position /= shape_[axis]) {
      row += position % shape_[axis] * row_strides_[axis];
    }
    seen_.resize(static_cast<std::size_t>(found_.rows));
    const auto bit = seen_.begin() + row;
    if (*bit) return;
    *bit = true;
    if (found_.mismatched++ == 0 || row < first_) first_ = row;
  }

  MismatchedRows result() const {
    MismatchedRows result = found_;
    if (result.mismatched > 0) result.first = index_of(first_, row_shape_);
    return result;
  }

 private:
  Shape shape_;
  Shape row_strides_;  // in row numbers; 0 along a row
  Shape row_shape_;
  MismatchedRows found_;
  std::int64_t first_ = 0;
  std::vector<bool> seen_;
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
  RowSource actual_elements = elements_of(actual, options);
  RowSource expected_elements = elements_of(expected, options);
  std::vector<Slot> slots(crew.slots());
  for (Slot& slot : slots) slot.found = result;
  const auto begin = [&](std::int64_t block, std::size_t s) {
    Slot& slot = slots[s];
    const std::int64_t first = block * kComparedElements;
    slot.tile = {0, 1, first, std::min(kComparedElements, elements - first)};
    actual_elements.begin(slot.tile, slot.actual.packed, slot.actual.elements);
    expected_elements.begin(slot.tile, slot.expected.packed, slot.expected.elements);
    slot.found.clear(first);
  };
  const auto work = [&](std::int64_t, std::size_t s) {
    Slot& slot = slots[s];
    actual_elements.read(slot.tile, slot.actual.packed, slot.actual.elements);
    expected_elements.read(slot.tile, slot.expected.packed, slot.expected.elements);
    for (std::int64_t start = 0; start < slot.tile.count; start += kChunk) {
      const std::int64_t count = std::min(kChunk, slot.tile.count - start);
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
  actual_elements.finish();
  expected_elements.finish();
  return result;
}

}  // namespace lnorm
