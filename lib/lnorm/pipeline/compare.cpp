#include "lnorm/pipeline/compare.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/layout/row_source.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
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

Axes last_axis(const Shape& shape) { return shape.empty() ? Axes{} : Axes{shape.size() - 1}; }

// Whether rows of the map lie one after another.
bool have_map(const RowLayout& layout, const Shape& shape) {
  return layout.axes().empty() || layout.axes().front() + layout.axes().size() == shape.size();
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
      return {buffer.found + start * item, count, info.dtype, info.byte_order};
    }

    Chunk& decoded(const RawElements& part) {
      // What the elements of another dtype left.
      if (has_lows && !has_low(part.dtype)) std::fill_n(chunk->low, kChunk, 0.0);
      has_lows = has_low(part.dtype);
      load(part.data, part.dtype, part.byte_order, part.count, *chunk);
      return *chunk;
    }
  };

  // The greatest finite magnitudes of the rows of a block, as far as they were asked for.
  using Maxima = std::vector<std::optional<double>>;

  Side actual;
  Side expected;
  Tile tile{};
  Comparison found;
  MismatchPlaces places;
  std::vector<RowRun> runs;
  std::vector<char> kept;
  Maxima actual_maxima;
  Maxima expected_maxima;
  ErrorMap::Part errors;
};

// Compares one pair of tensors, or the part of it that a rank has.
class Comparer::Pair {
 public:
  Pair(TensorSource& actual, TensorSource& expected, Comparison& result, const ListLimits& limits,
       const RunOptions& options, const std::optional<Axes>& row_axes,
       const std::shared_ptr<const Mask>& mask)
      : actual_(actual.info()),
        expected_(expected.info()),
        limits_(limits),
        options_(options),
        layout_(actual_.shape, row_axes.value_or(last_axis(actual_.shape))),
        asks_for_rows_(row_axes.has_value()),
        extent_{element_count(actual_.shape), layout_.block_elements()},
        result_(result),
        failed_(layout_, limits.rows) {
    WorstElements::RowOf row_of;
    if (asks_for_rows_) {
      row_of = [layout = layout_](std::int64_t position) { return layout.row_of(position); };
    }
    if (mask) mask_.emplace(mask, actual.info(), layout_.axes());
    result_.worst = WorstElements(limits.worst, limits.by, row_of);
    result_.row_max_axes = result_.slice ? result_.slice->axes : layout_.axes();
    const auto opened = [&](TensorSource& source, std::unique_ptr<TensorSource>& spool) {
      if (layout_.blocks_hold_rows() || source.has_random_access() || extent_.items == 0) {
        return elements_of(source, options);
      }
      spool = spooled(source);
      return elements_of(*spool, options);
    };
    actual_elements_.emplace(opened(actual, actual_spool_));
    expected_elements_.emplace(opened(expected, expected_spool_));
    if (extent_.items > 0 && limits.map) {
      const std::int64_t length =
          have_map(layout_, actual_.shape) ? layout_.row_length() : actual_.shape.back();
      map_.emplace(extent_.items / length, length, *limits.map);
    }
  }

  void run(std::vector<Slot>& slots) {
    result_.elements = share_of(extent_, *options_.ranks).first;
    slots.resize(std::max<std::size_t>(slots.size(), 1));
    if (extent_.items > 0) find_fit(slots.front());
    // To create a thread takes as long as some blocks of equal elements.
    const Executor executor = starts_same_ ? Executor(options_.threads, extent_.blocks() / 4)
                                           : executor_for_comparison(actual_, options_.threads);
    slots.resize(std::max(slots.size(), executor.slots()));
    for (Slot& slot : slots) slot.found = result_;
    if (!layout_.blocks_hold_rows() && extent_.items > 0) {
      expected_maxima_ = row_maxima(*expected_elements_);
    }
    for_each_block(
        extent_, executor, options_, slots,
        [&](const Block& block, Slot& slot) { begin(block, slot); },
        [&](const Block&, Slot& slot) { work(slot); },
        [&](const Block&, Slot& slot) { end(slot); });
    actual_elements_->finish();
    expected_elements_->finish();
    reduce(
        *options_.ranks, [&] { return packed(); },
        [&](const std::string& bytes) { append(bytes); });
    failed_.describe(asks_for_rows_, result_);
    if (holds_fit() && !result_.equal()) result_.fit = fit_;
    result_.error_map = std::move(map_);
  }

 private:
  void begin(const Block& block, Slot& slot) {
    slot.tile = {0, 1, block.first, block.count};
    if (block.first != 0) {  // or find_fit has done so
      actual_elements_->begin(slot.tile, slot.actual.buffer);
      expected_elements_->begin(slot.tile, slot.expected.buffer);
    }
    slot.found.clear(block.first, floor_);
    slot.places.wants_all_rows = limits_.rows;
    slot.places.clear();
    slot.actual_maxima.clear();
    slot.expected_maxima.clear();
  }

  // Takes the fit of the first block of all.
  void find_fit(Slot& slot) {
    const Tile tile{0, 1, 0, std::min(extent_.items, extent_.items_of_block)};
    const auto numbers = [&](const RowSource& elements, Slot::Side& side) {
      std::vector<double> result;
      result.reserve(static_cast<std::size_t>(tile.count));
      if (mask_) {
        layout_.cut(
            0, tile.count, [](std::int64_t) { return RowScale(); }, slot.runs);
        fill_kept(tile.count, slot);
      }
      for (std::int64_t start = 0; start < tile.count; start += kChunk) {
        const std::int64_t count = std::min(kChunk, tile.count - start);
        const Chunk& chunk = side.decoded(side.part(elements.info(), start, count));
        for (std::int64_t i = 0; i < count; ++i) {
          if (!mask_ || slot.kept[static_cast<std::size_t>(start + i)] != 0) {
            result.push_back(chunk.high[i]);
          }
        }
      }
      return result;
    };
    actual_elements_->begin(tile, slot.actual.buffer);
    expected_elements_->begin(tile, slot.expected.buffer);
    read(tile, slot);
    const RawElements a = slot.actual.part(actual_, 0, tile.count);
    const RawElements b = slot.expected.part(expected_, 0, tile.count);
    starts_same_ = are_same(a, b, true);
    if (starts_same_) return;
    fit_ = fit_of(numbers(*actual_elements_, slot.actual),
                  numbers(*expected_elements_, slot.expected), actual_.dtype);
    if (fit_ && fit_->is_identity()) fit_.reset();
    if (fit_ && !layout_.blocks_hold_rows()) {
      actual_maxima_ = row_maxima(*actual_elements_);
    }
  }

  // The greatest finite magnitude of every row, of elements that are read twice for it.
  std::vector<double> row_maxima(const RowSource& elements) const {
    std::vector<double> maxima(static_cast<std::size_t>(layout_.rows()), kNoneFinite);
    const Executor executor = executor_for_comparison(elements.info(), options_.threads);
    std::vector<Slot> slots(executor.slots());
    executor.run(
        extent_.blocks(), {},
        [&](std::int64_t block, std::size_t number) {
          const std::int64_t first = block * extent_.items_of_block;
          const Tile tile{0, 1, first, std::min(extent_.items_of_block, extent_.items - first)};
          Slot& slot = slots[number];
          elements.read(tile, slot.actual.buffer);
          add_maxima(elements.info(), tile, slot, maxima);
        },
        {});
    return maxima;
  }

  void add_maxima(const TensorInfo& info, const Tile& tile, Slot& slot,
                  std::vector<double>& maxima) const {
    for (std::int64_t start = 0; start < tile.count; start += kChunk) {
      const std::int64_t count = std::min(kChunk, tile.count - start);
      const Chunk& chunk = slot.actual.decoded(slot.actual.part(info, start, count));
      layout_.cut(
          tile.first + start, count, [](std::int64_t) { return RowScale(); }, slot.runs);
      slot.kept.assign(static_cast<std::size_t>(count), 1);
      if (mask_) fill_kept(count, slot);
      std::int64_t i = 0;
      for (const RowRun& run : slot.runs) {
        double of_run = kNoneFinite;
        for (const std::int64_t end = i + run.count; i < end; ++i) {
          const double size = std::fabs(chunk.high[i]);
          const bool counts = slot.kept[static_cast<std::size_t>(i)] != 0 && std::isfinite(size);
          of_run = std::max(of_run, counts ? size : kNoneFinite);
        }
        // Others may look at the same row.
        const std::atomic_ref greatest(maxima[static_cast<std::size_t>(run.row)]);
        double known = greatest.load(std::memory_order_relaxed);
        while (of_run > known && !greatest.compare_exchange_weak(known, of_run)) continue;
      }
    }
  }

  // Says which elements of the slot's runs the mask leaves.
  void fill_kept(std::int64_t count, Slot& slot) const {
    slot.kept.resize(static_cast<std::size_t>(count));
    char* next = slot.kept.data();
    for (const RowRun& run : slot.runs) {
      mask_->fill(run.row, run.column, run.count, next);
      next += run.count;
    }
  }

  bool holds_fit() const { return fit_ && !fit_fails_; }

  void read(const Tile& tile, Slot& slot) const {
    actual_elements_->read(tile, slot.actual.buffer);
    expected_elements_->read(tile, slot.expected.buffer);
  }

  void work(Slot& slot) const {
    if (slot.tile.first != 0) read(slot.tile, slot);  // or find_fit has done so
    if (map_) slot.errors.clear(*map_, slot.tile.first, slot.tile.count);
    for (std::int64_t start = 0; start < slot.tile.count; start += kChunk) {
      compare_chunk(start, std::min(kChunk, slot.tile.count - start), slot);
    }
  }

  // The greatest finite magnitude of a row of a block.
  double greatest_of_row(std::int64_t row, const TensorInfo& info, const Slot& slot,
                         const Slot::Side& side, Slot::Maxima& maxima,
                         const std::vector<double>& all) const {
    if (!layout_.blocks_hold_rows()) return all[static_cast<std::size_t>(row)];
    const std::int64_t length = layout_.row_length();
    const std::int64_t first = slot.tile.first / length;
    const auto number = static_cast<std::size_t>(row - first);
    if (number >= maxima.size()) maxima.resize(number + 1);
    std::optional<double>& greatest = maxima[number];
    if (!greatest) {
      const RawElements all_of_row = side.part(info, row * length - slot.tile.first, length);
      greatest = mask_ ? greatest_left(row, all_of_row) : greatest_finite(all_of_row);
    }
    return *greatest;
  }

  // The greatest finite magnitude of what the mask leaves.
  double greatest_left(std::int64_t row, const RawElements& elements) const {
    std::vector<char> kept(static_cast<std::size_t>(elements.count));
    mask_->fill(row, 0, elements.count, kept.data());
    double greatest = kNoneFinite;
    for (std::int64_t i = 0; i < elements.count; ++i) {
      if (kept[static_cast<std::size_t>(i)] == 0) continue;
      const double size = std::fabs(element_at(elements, i).high);
      if (std::isfinite(size)) greatest = std::max(greatest, size);
    }
    return greatest;
  }

  // start: within the block.
  void compare_chunk(std::int64_t start, std::int64_t count, Slot& slot) const {
    const RawElements a = slot.actual.part(actual_, start, count);
    const RawElements b = slot.expected.part(expected_, start, count);
    if (are_same(a, b, result_.criteria.equal_nan) && !limits_.rows && !holds_fit() && !mask_ &&
        !map_) {
      return compare_same_elements(b, slot.found);
    }
    Chunk& actual = slot.actual.decoded(a);
    Chunk& expected = slot.expected.decoded(b);
    const DType dtype = result_.ulp_dtype();
    const std::int64_t position = slot.tile.first + start;
    layout_.cut(
        position, count,
        [&](std::int64_t row) {
          return scale_of_row(greatest_of_row(row, expected_, slot, slot.expected,
                                              slot.expected_maxima, expected_maxima_),
                              dtype);
        },
        slot.runs);
    if (mask_) fill_kept(count, slot);
    if (map_) {
      for (std::int64_t i = 0; mask_ && i < count; ++i) {
        if (slot.kept[static_cast<std::size_t>(i)] == 0) actual.high[i] = expected.high[i] = kNan;
      }
      slot.errors.add(position, actual, expected, count);
    }
    if (mask_) leave_out(slot.kept.data(), actual, expected, slot.runs);
    compare_elements(actual, expected, slot.runs, limits_.mismatches, slot.found, &slot.places);
    if (holds_fit()) hold_fit(actual, expected, slot);
  }

  // Of integers nothing is left.
  void hold_fit(const Chunk& actual, const Chunk& expected, Slot& slot) const {
    constexpr double kUlps = 4;
    const DType dtype = result_.ulp_dtype();
    std::int64_t next = 0;
    for (const RowRun& run : slot.runs) {
      const double greatest =
          greatest_of_row(run.row, actual_, slot, slot.actual, slot.actual_maxima, actual_maxima_);
      const double bound = is_floating(dtype) ? kUlps * ulp_at(std::max(greatest, 0.0), dtype) : 0;
      if (!fit_->explains(actual.high + next, expected.high + next, run.count, bound)) {
        fit_fails_ = true;
        return;
      }
      next += run.count;
    }
  }

  void end(Slot& slot) {
    if (map_) map_->add(slot.errors);
    result_.append(slot.found, limits_.mismatches);
    floor_ = result_.worst.floor();
    failed_.add(slot.places);
  }

  // What this rank has found, for the one before it.
  std::string packed() {
    std::string failed = failed_.packed();
    bool fails = fit_fails_;
    return serialize(result_, failed, fails);
  }

  void append(const std::string& bytes) {
    Comparison next;
    std::string failed;
    bool fails = false;
    deserialize(bytes, next, failed, fails);
    result_.append(next, limits_.mismatches);
    failed_.append(failed);
    if (fails) fit_fails_ = true;
  }

  const TensorInfo actual_;
  const TensorInfo expected_;
  const ListLimits& limits_;
  const RunOptions& options_;
  const RowLayout layout_;
  const bool asks_for_rows_;
  const LoopExtent extent_;
  Comparison& result_;
  std::unique_ptr<TensorSource> actual_spool_;
  std::unique_ptr<TensorSource> expected_spool_;
  std::optional<RowSource> actual_elements_;
  std::optional<RowSource> expected_elements_;
  // Of all rows, where blocks do not hold them.
  std::vector<double> actual_maxima_;
  std::vector<double> expected_maxima_;
  FailedRows failed_;
  std::optional<RowMask> mask_;
  std::optional<ErrorMap> map_;
  bool starts_same_ = false;  // the first block, byte by byte
  std::optional<Fit> fit_;    // of the first block
  mutable std::atomic<bool> fit_fails_ = false;
  std::atomic<std::uint64_t> floor_ = 0;  // of the worst of the blocks that have left
};

Comparer::Comparer() = default;
Comparer::~Comparer() = default;

Executor executor_for_comparison(const TensorInfo& actual, int threads) {
  return {threads, (element_count(actual.shape) + kComparedElements - 1) / kComparedElements};
}

Comparison Comparer::compare(TensorSource& actual, TensorSource& expected, const Criteria& criteria,
                             const ListLimits& limits, const RunOptions& options,
                             const std::optional<Axes>& row_axes,
                             const std::shared_ptr<const Mask>& mask) {
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
    Pair(actual, expected, result, limits, shared, row_axes, mask).run(slots_);
  }
  return result;
}

}  // namespace lnorm
