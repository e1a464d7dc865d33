#include "lnorm/pipeline/compare.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "lnorm/core/chunk.hpp"
#include "lnorm/layout/row_source.hpp"
#include "lnorm/pipeline/block_loop.hpp"
#include "lnorm/pipeline/compared_rows.hpp"
#include "lnorm/pipeline/plan.hpp"

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
    TileBuffer buffer;
    std::unique_ptr<Chunk> chunk = std::make_unique<Chunk>();
    bool has_lows = false;  // the chunk

    // start: within the block.
    RawElements part(const TensorInfo& info, std::int64_t start, std::int64_t count) const {
      const auto item = static_cast<std::int64_t>(item_size(info.dtype));
      return {buffer.rows.data() + start * item, count, info.dtype, info.byte_order};
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

// Compares one pair of tensors, or the part of it that a rank has.
class Comparer::Pair {
 public:
  Pair(TensorSource& actual, TensorSource& expected, Comparison& result, const ListLimits& limits,
       const RunOptions& options, const std::optional<Axes>& row_axes)
      : actual_(actual.info()),
        expected_(expected.info()),
        limits_(limits),
        options_(options),
        extent_{element_count(actual_.shape), kComparedElements},
        result_(result),
        actual_elements_(elements_of(actual, options)),
        expected_elements_(elements_of(expected, options)) {
    const Shape& shape = actual_.shape;
    WorstElements::RowOf row_of;
    if (row_axes) {
      rows_.emplace(shape, *row_axes);
      row_of = [numbers = RowNumbers(shape, *row_axes)](std::int64_t position) {
        return numbers.of(position);
      };
    }
    result_.worst = WorstElements(limits.worst, limits.by, row_of);
    result_.row_max_axes = axes_of_row_max(shape, row_axes);
    if (extent_.items == 0) return;
    if (limits.worst > 0 && result_.row_max_axes) {
      row_maxima_.emplace(element_count(extents(shape, *result_.row_max_axes)));
    }
    if (limits.map) {
      const Axes last = shape.empty() ? Axes{} : Axes{shape.size() - 1};
      const std::int64_t length =
          element_count(extents(shape, result_.row_max_axes.value_or(last)));
      map_.emplace(extent_.items / length, length, *limits.map);
    }
  }

  void run(std::vector<Slot>& slots) {
    result_.elements = share_of(extent_, *options_.ranks).begin;
    const Executor executor = executor_for_comparison(actual_, options_.threads);
    slots.resize(std::max(slots.size(), executor.slots()));
    for (Slot& slot : slots) slot.found = result_;
    for_each_block(
        extent_, executor, options_, slots,
        [&](const Block& block, Slot& slot) { begin(block, slot); },
        [&](const Block&, Slot& slot) { work(slot); },
        [&](const Block&, Slot& slot) { end(slot); });
    actual_elements_.finish();
    expected_elements_.finish();
    reduce(
        *options_.ranks, [&] { return packed(); },
        [&](const std::string& bytes) { append(bytes); });
    if (rows_) result_.rows = rows_->result();
    if (result_.slice) name_in_whole(result_);
    result_.error_map = std::move(map_);
  }

 private:
  void begin(const Block& block, Slot& slot) {
    slot.tile = {0, 1, block.first, block.count};
    actual_elements_.begin(slot.tile, slot.actual.buffer);
    expected_elements_.begin(slot.tile, slot.expected.buffer);
    slot.found.clear(block.first, floor_);
  }

  void work(Slot& slot) const {
    actual_elements_.read(slot.tile, slot.actual.buffer);
    expected_elements_.read(slot.tile, slot.expected.buffer);
    if (map_) slot.errors.clear(*map_, slot.tile.first, slot.tile.count);
    for (std::int64_t start = 0; start < slot.tile.count; start += kChunk) {
      compare_chunk(start, std::min(kChunk, slot.tile.count - start), slot);
    }
    if (!row_maxima_) return;
    const std::int64_t first = slot.tile.first;
    const auto greatest = [&](std::int64_t start, std::int64_t stop) {
      return greatest_finite(slot.expected.part(expected_, start - first, stop - start));
    };
    slot.row_maxima = row_maxima_->examine(first, slot.found.elements, greatest, slot.found.worst);
  }

  // start: within the block.
  void compare_chunk(std::int64_t start, std::int64_t count, Slot& slot) const {
    const RawElements a = slot.actual.part(actual_, start, count);
    const RawElements b = slot.expected.part(expected_, start, count);
    if (are_same(a, b, result_.criteria.equal_nan)) return compare_same_elements(b, slot.found);
    const Chunk& actual = slot.actual.decoded(a);
    const Chunk& expected = slot.expected.decoded(b);
    const std::size_t max_kept =
        rows_ ? static_cast<std::size_t>(kComparedElements) : limits_.mismatches;
    compare_elements(actual, expected, count, max_kept, slot.found);
    if (map_) slot.errors.add(slot.tile.first + start, actual, expected, count);
  }

  void end(Slot& slot) {
    if (row_maxima_) row_maxima_->append(slot.row_maxima, result_.worst, slot.found.worst);
    if (map_) map_->add(slot.errors);
    result_.append(slot.found, limits_.mismatches);
    floor_ = result_.worst.floor();
    if (!rows_) return;
    for (const ElementPair& pair : slot.found.first_mismatches) rows_->add(pair.position);
  }

  // What this rank has found, for the one before it.
  std::string packed() {
    RowMaxima::Block all = row_maxima_ ? row_maxima_->all() : RowMaxima::Block();
    std::vector<std::uint64_t> seen;
    if (rows_) seen = rows_->seen();
    return serialize(result_, all, seen);
  }

  void append(const std::string& bytes) {
    Comparison next;
    RowMaxima::Block all;
    std::vector<std::uint64_t> seen;
    deserialize(bytes, next, all, seen);
    if (row_maxima_) row_maxima_->append(all, result_.worst, next.worst);
    result_.append(next, limits_.mismatches);
    if (rows_) rows_->append(seen);
  }

  const TensorInfo& actual_;
  const TensorInfo& expected_;
  const ListLimits& limits_;
  const RunOptions& options_;
  const LoopExtent extent_;
  Comparison& result_;
  RowSource actual_elements_;
  RowSource expected_elements_;
  std::optional<RowCounter> rows_;
  std::optional<RowMaxima> row_maxima_;
  std::optional<ErrorMap> map_;
  std::atomic<std::uint64_t> floor_ = 0;  // of the worst of the blocks that have left
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
  check_same(*options.ranks, actual.info());
  check_same(*options.ranks, expected.info());
  if (!result.same_shape) return result;
  Participants participants(*options.ranks, !limits.map && can_distribute_elements(actual) &&
                                                can_distribute_elements(expected));
  if (Ranks* const ranks = participants.ranks()) {
    const RunOptions shared{options.threads, options.progress, ranks};
    Pair(actual, expected, result, limits, shared, row_axes).run(slots_);
  }
  return result;
}

Comparison compare(TensorSource& actual, TensorSource& expected, const Criteria& criteria,
                   const ListLimits& limits, const RunOptions& options,
                   const std::optional<Axes>& row_axes) {
  return Comparer().compare(actual, expected, criteria, limits, options, row_axes);
}

}  // namespace lnorm
