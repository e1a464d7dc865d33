#include "lnorm/pipeline/compare.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/slice.hpp"
#include "lnorm/layout/row_source.hpp"
#include "lnorm/pipeline/mismatched_rows.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/row_maxima.hpp"

namespace lnorm {

namespace {

bool can_distribute_elements(const TensorSource& source) {
  return can_distribute(source, make_c_order_plan(source.info()));
}

// All elements as one row, in C order.
RowSource elements_of(TensorSource& source, const RunOptions& options) {
  const TensorInfo& info = source.info();
  const IoPath io_path = make_c_order_plan(info);
  const MemoryOrder order = io_path.transposes ? MemoryOrder::c : info.order;
  return {source, RowView::one_row(info.shape, order), io_path, for_each_tile(options.threads)};
}

// Whether the same bytes are the same elements, of which each equals itself.
bool are_same(const RawElements& a, const RawElements& b, bool equal_nan) {
  const auto bytes = static_cast<std::size_t>(a.count) * item_size(a.dtype);
  return a.dtype == b.dtype && a.byte_order == b.byte_order &&
         std::memcmp(a.data, b.data, bytes) == 0 && (equal_nan || !has_nan(a));
}

// The axes of the rows that row_max is of: those that were asked for, or else the last one; nothing where
// they are not the last ones, so that rows do not lie one after another.
std::optional<Axes> axes_of_row_max(const Shape& shape, const std::optional<Axes>& row_axes) {
  if (!row_axes) return shape.empty() ? Axes{} : Axes{shape.size() - 1};
  for (std::size_t i = 0; i < row_axes->size(); ++i) {
    if ((*row_axes)[i] != shape.size() - row_axes->size() + i) return {};
  }
  return row_axes;
}

// What is said of rows, which are those of a slice, in axes and indices of the whole tensors.
void name_in_whole(Comparison& result) {
  const RowSlice& slice = *result.slice;
  result.row_max_axes = slice.axes;
  if (!result.rows) return;
  MismatchedRows& rows = *result.rows;
  rows.axes = slice.axes;
  if (rows.mismatched > 0) {
    rows.first = index_of(slice.first + rows.first.front(), row_shape(slice.shape, slice.axes));
  }
}

}  // namespace

struct Comparer::Slot {
  // One of the two sides of a block: read whole, decoded a chunk at a time.
  struct Side {
    std::vector<std::byte> elements;
    std::vector<std::byte> packed;
    std::unique_ptr<Chunk> chunk = std::make_unique<Chunk>();
    bool has_lows = false;  // the chunk

    // start: within the block.
    RawElements part(const TensorInfo& info, std::int64_t start, std::int64_t count) const {
      const auto item = static_cast<std::int64_t>(item_size(info.dtype));
      return {elements.data() + start * item, count, info.dtype, info.byte_order};
    }

    const Chunk& decoded(const RawElements& part) {
      // What the elements of another dtype left.
      if (has_lows && !has_low(part.dtype)) std::fill_n(chunk->low, kChunk, 0.0);
      has_lows = has_low(part.dtype);
      load(part.data, part.dtype, part.byte_order, part.count, *chunk);
      return *chunk;
    }
  };

  Side actual;
  Side expected;
  Tile tile{};
  Comparison found;
  RowMaxima::Block row_maxima;
  ErrorMap::Part errors;
};

Comparer::Comparer() = default;
Comparer::~Comparer() = default;

Executor executor_for_comparison(const TensorInfo& actual, int threads) {
  return {threads, (element_count(actual.shape) + kComparedElements - 1) / kComparedElements};
}

Comparison Comparer::compare(TensorSource& actual, TensorSource& expected, const Criteria& criteria,
                             const ListLimits& limits, const RunOptions& options,
                             const std::optional<Axes>& row_axes) {
  Comparison result;
  result.actual = whole_of(actual.info());
  result.expected = whole_of(expected.info());
  result.slice = actual.info().slice;
  result.criteria = criteria;
  result.same_shape = actual.info().shape == expected.info().shape;
  Ranks& ranks = *options.ranks;
  check_same(ranks, actual.info());
  check_same(ranks, expected.info());
  if (!result.same_shape) return result;
  const bool distributes = all_of(
      ranks, !limits.map && can_distribute_elements(actual) && can_distribute_elements(expected));
  if (!distributes && !ranks.is_first()) return result;
  const Shape& shape = actual.info().shape;
  std::optional<RowCounter> rows;
  WorstElements::RowOf row_of;
  if (row_axes) {
    rows.emplace(shape, *row_axes);
    row_of = [numbers = RowNumbers(shape, *row_axes)](std::int64_t position) {
      return numbers.of(position);
    };
  }
  result.worst = WorstElements(limits.worst, limits.by, row_of);
  result.row_max_axes = axes_of_row_max(shape, row_axes);
  const std::size_t max_kept =
      rows ? static_cast<std::size_t>(kComparedElements) : limits.mismatches;
  const std::int64_t elements = element_count(shape);
  std::optional<RowMaxima> row_maxima;
  if (elements > 0 && limits.worst > 0 && result.row_max_axes) {
    row_maxima.emplace(element_count(extents(shape, *result.row_max_axes)));
  }
  std::optional<ErrorMap> map;
  if (limits.map && elements > 0) {
    const Axes last = shape.empty() ? Axes{} : Axes{shape.size() - 1};
    const std::int64_t length = element_count(extents(shape, result.row_max_axes.value_or(last)));
    map.emplace(elements / length, length, *limits.map);
  }
  std::atomic<std::uint64_t> floor = 0;  // of the worst of the blocks that have left
  const std::int64_t blocks = (elements + kComparedElements - 1) / kComparedElements;
  const BlockRange range = block_range_of(blocks, ranks, distributes);
  result.elements = std::min(range.begin * kComparedElements, elements);
  const Executor executor = executor_for_comparison(actual.info(), options.threads);
  RowSource actual_elements = elements_of(actual, options);
  RowSource expected_elements = elements_of(expected, options);
  slots_.resize(std::max(slots_.size(), executor.slots()));
  for (Slot& slot : slots_) slot.found = result;
  const auto begin = [&](std::int64_t block, std::size_t s) {
    Slot& slot = slots_[s];
    const std::int64_t first = (range.begin + block) * kComparedElements;
    slot.tile = {0, 1, first, std::min(kComparedElements, elements - first)};
    actual_elements.begin(slot.tile, slot.actual.packed, slot.actual.elements);
    expected_elements.begin(slot.tile, slot.expected.packed, slot.expected.elements);
    slot.found.clear(first, floor);
  };
  const auto work = [&](std::int64_t, std::size_t s) {
    Slot& slot = slots_[s];
    actual_elements.read(slot.tile, slot.actual.packed, slot.actual.elements);
    expected_elements.read(slot.tile, slot.expected.packed, slot.expected.elements);
    if (map) slot.errors.clear(*map, slot.tile.first, slot.tile.count);
    for (std::int64_t start = 0; start < slot.tile.count; start += kChunk) {
      const std::int64_t count = std::min(kChunk, slot.tile.count - start);
      const RawElements a = slot.actual.part(actual.info(), start, count);
      const RawElements b = slot.expected.part(expected.info(), start, count);
      if (are_same(a, b, criteria.equal_nan)) {
        compare_same_elements(b, slot.found);
      } else {
        const Chunk& actual_chunk = slot.actual.decoded(a);
        const Chunk& expected_chunk = slot.expected.decoded(b);
        compare_elements(actual_chunk, expected_chunk, count, max_kept, slot.found);
        if (map) slot.errors.add(slot.tile.first + start, actual_chunk, expected_chunk, count);
      }
    }
    if (!row_maxima) return;
    const std::int64_t first = slot.tile.first;
    const auto greatest = [&](std::int64_t start, std::int64_t stop) {
      return greatest_finite(slot.expected.part(expected.info(), start - first, stop - start));
    };
    slot.row_maxima = row_maxima->examine(first, slot.found.elements, greatest, slot.found.worst);
  };
  const auto end = [&](std::int64_t, std::size_t s) {
    Slot& slot = slots_[s];
    if (row_maxima) row_maxima->append(slot.row_maxima, result.worst, slot.found.worst);
    if (map) map->add(slot.errors);
    result.append(slot.found, limits.mismatches);
    floor = result.worst.floor();
    if (rows) {
      for (const ElementPair& pair : slot.found.first_mismatches) rows->add(pair.position);
    }
    ranks.check();
    // The others are about as far.
    if (options.progress) {
      options.progress(std::min(result.elements * (distributes ? ranks.count() : 1), elements));
    }
  };
  executor.run(range.size(), begin, work, end);
  actual_elements.finish();
  expected_elements.finish();
  if (distributes) {
    reduce(
        ranks,
        [&] {
          RowMaxima::Block all = row_maxima ? row_maxima->all() : RowMaxima::Block();
          std::vector<std::uint64_t> seen;
          if (rows) seen = rows->seen();
          return serialize(result, all, seen);
        },
        [&](const std::string& bytes) {
          Comparison next;
          RowMaxima::Block all;
          std::vector<std::uint64_t> seen;
          deserialize(bytes, next, all, seen);
          if (row_maxima) row_maxima->append(all, result.worst, next.worst);
          result.append(next, limits.mismatches);
          if (rows) rows->append(seen);
        });
  }
  if (rows) result.rows = rows->result();
  if (result.slice) name_in_whole(result);
  result.error_map = std::move(map);
  return result;
}

Comparison compare(TensorSource& actual, TensorSource& expected, const Criteria& criteria,
                   const ListLimits& limits, const RunOptions& options,
                   const std::optional<Axes>& row_axes) {
  return Comparer().compare(actual, expected, criteria, limits, options, row_axes);
}

}  // namespace lnorm
