#include "lnorm/pipeline/tensor_stats.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/slice.hpp"
#include "lnorm/io/spool.hpp"
#include "lnorm/kernel/moments.hpp"
#include "lnorm/layout/row_source.hpp"

namespace lnorm {

namespace {

// What is kept of every row whose elements are all finite: mean and variance.
using RowRecord = std::array<double, 2>;
using Columns = std::array<ColumnSummary, 2>;

// So many records are held, those of most tensors; of more, all are on disk.
constexpr std::int64_t kMaxHeld = 1 << 19;

// A block under way, in buffers that the next block will use again.
struct MeasuredBlock {
  std::vector<std::byte> elements;
  std::vector<std::byte> packed;
  RowsIn x{};
  std::int64_t first_row = 0;
  std::vector<Moments> moments;
  std::vector<RowRecord> records;
  std::optional<LargestElement> largest;
};

void improve(std::optional<LargestElement>& largest, const LargestElement& other) {
  if (!largest || largest->is_beaten_by(other)) largest = other;
}

// The greatest |x| of a row as a double; infinite where infinities hide it, negative where there is none.
double greatest_of(const Moments& row) {
  return std::isnan(row.min) ? -1 : std::max(std::fabs(row.min), std::fabs(row.max));
}

// Of the finite elements of a row. The position is that in the row.
std::optional<LargestElement> largest_of(const RowsIn& row) {
  std::optional<LargestElement> largest;
  for_each_element(row, [&](std::int64_t i, Number value) {
    if (std::isfinite(value.high)) improve(largest, {value, i});
  });
  return largest;
}

// The same where its |x| is known, and a double.
std::optional<LargestElement> first_of_size(const RowsIn& row, double size) {
  Chunk chunk;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = load_chunk(row, start, chunk);
    const double* const found =
        std::find_if(chunk.high, chunk.high + n, [&](double x) { return std::fabs(x) == size; });
    if (found != chunk.high + n) return LargestElement{{*found}, start + (found - chunk.high)};
  }
  return {};
}

// Finds the largest elements of blocks by the moments of their rows: few rows are looked through.
class LargestFinder {
 public:
  explicit LargestFinder(const Plan& plan)
      : plan_(plan),
        is_exact_(!has_low(plan.in)),
        first_row_wins_(is_exact_ && plan.out_view.is_contiguous()) {}

  // Nothing if an earlier block has a larger one.
  std::optional<LargestElement> find(const MeasuredBlock& block) const {
    const double least = least_;
    double greatest = -1;
    bool has_infinity = false;
    for (const Moments& row : block.moments) {
      const double of_row = greatest_of(row);
      has_infinity = has_infinity || std::isinf(of_row);
      if (!std::isinf(of_row)) greatest = std::max(greatest, of_row);
    }
    const bool can_win = greatest >= 0 && (first_row_wins_ ? greatest > least : greatest >= least);
    std::optional<LargestElement> largest;
    if (!can_win && !has_infinity) return largest;
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      const double of_row = greatest_of(block.moments[static_cast<std::size_t>(r)]);
      if (!std::isinf(of_row) && !(can_win && of_row == greatest)) continue;
      const std::int64_t row = block.first_row + r;
      // Of equals the first in C order wins.
      if (largest && is_exact_ && of_row == std::fabs(largest->value.high) &&
          position(row, 0) > largest->position) {
        continue;
      }
      const auto found = is_exact_ && !std::isinf(of_row)
                             ? first_of_size(row_of(block.x, r), of_row)
                             : largest_of(row_of(block.x, r));
      if (found) improve(largest, {found->value, position(row, found->position)});
    }
    return largest;
  }

  // Blocks leave in order.
  void leave(const std::optional<LargestElement>& largest) {
    if (!largest) return;
    improve(largest_, *largest);
    least_ = std::fabs(largest_->value.high);
  }

  const std::optional<LargestElement>& largest() const noexcept { return largest_; }

 private:
  std::int64_t position(std::int64_t row, std::int64_t element) const {
    return plan_.out_view.runs({row, 1, element, 1}).front().position;
  }

  const Plan& plan_;
  bool is_exact_;  // elements are doubles
  bool first_row_wins_;
  std::optional<LargestElement> largest_;
  std::atomic<double> least_ = -1;  // |x| of the largest so far
};

// Brings together on every rank what the ranks have found in their rows.
void merge(Ranks& ranks, TensorStats& stats, Columns& columns) {
  all_reduce(
      ranks, [&] { return serialize(stats.non_finite, stats.largest, columns); },
      [&](const std::string& bytes) {
        NonFinite non_finite;
        std::optional<LargestElement> largest;
        Columns next;
        deserialize(bytes, non_finite, largest, next);
        stats.non_finite.append(0, non_finite);
        if (largest) improve(stats.largest, *largest);
        for (std::size_t column = 0; column < columns.size(); ++column) {
          columns[column].append(next[column]);
        }
      },
      [&](const std::string& bytes) {
        deserialize(bytes, stats.non_finite, stats.largest, columns);
      });
}

}  // namespace

TensorStats measure_tensor(TensorSource& given, const Plan& plan, const RunOptions& options) {
  TensorStats stats;
  stats.x = whole_of(given.info());
  stats.slice = given.info().slice;
  stats.axes = stats.slice ? stats.slice->axes : plan.axes;
  stats.rows = plan.rows;
  stats.row_length = plan.row_length;
  stats.ddof = plan.formula.ddof;
  Ranks& ranks = *options.ranks;
  check_same(ranks, given.info());
  const bool distributes = all_of(ranks, can_distribute(given, plan.route.in));
  if (!distributes && !ranks.is_first()) return stats;
  const std::int64_t rows = plan.row_length > 0 ? plan.rows : 0;
  const std::int64_t blocks = (rows + plan.route.rows - 1) / plan.route.rows;
  const BlockRange range = block_range_of(blocks, ranks, distributes);
  const Executor executor = executor_for(plan, options.threads);
  std::vector<MeasuredBlock> slots(executor.slots());
  RowSource source(given, plan.in_view, plan.route.in, for_each_tile(options.threads));
  Spool records(sizeof(RowRecord),
                static_cast<std::size_t>(std::min(rows, kMaxHeld)) * sizeof(RowRecord));
  Columns columns;
  LargestFinder finder(plan);
  const auto tile_of = [&](const MeasuredBlock& slot) {
    return Tile{slot.first_row, slot.x.rows, 0, plan.row_length};
  };

  const auto begin = [&](std::int64_t block, std::size_t s) {
    MeasuredBlock& slot = slots[s];
    slot.first_row = (range.begin + block) * plan.route.rows;
    const std::int64_t count = std::min(plan.route.rows, rows - slot.first_row);
    slot.x = {nullptr, plan.in, source.info().byte_order, count, plan.row_length};
    source.begin(tile_of(slot), slot.packed, slot.elements);
  };
  const auto work = [&](std::int64_t, std::size_t s) {
    MeasuredBlock& slot = slots[s];
    source.read(tile_of(slot), slot.packed, slot.elements);
    slot.x.data = slot.elements.data();
    slot.moments.resize(static_cast<std::size_t>(slot.x.rows));
    measure_moments(slot.x, stats.ddof, slot.moments.data());
    slot.records.clear();
    for (const Moments& row : slot.moments) {
      if (row.non_finite == 0) slot.records.push_back({row.mean, row.variance});
    }
    slot.largest = finder.find(slot);
  };
  const auto end = [&](std::int64_t, std::size_t s) {
    const MeasuredBlock& slot = slots[s];
    std::int64_t row = slot.first_row;
    for (const Moments& moments : slot.moments) stats.non_finite.add(row++, moments.non_finite);
    for (const RowRecord& record : slot.records) {
      for (std::size_t column = 0; column < record.size(); ++column)
        columns[column].add(record[column]);
    }
    records.append(std::as_bytes(std::span(slot.records)));
    finder.leave(slot.largest);
    ranks.check();
    // The others are about as far.
    if (options.progress) {
      options.progress(std::min(row * (distributes ? ranks.count() : 1), rows) * plan.row_length);
    }
  };
  executor.run(range.size(), begin, work, end);
  source.finish();
  stats.largest = finder.largest();
  if (distributes) merge(ranks, stats, columns);
  if (stats.slice && stats.largest) {
    stats.largest->position = position_in_whole(*stats.slice, stats.largest->position);
  }
  const auto each_value = [&](std::int64_t step, const SeeValues& see) {
    records.replay_each(step, [&](std::span<const std::byte> bytes) {
      std::vector<RowRecord> some(bytes.size() / sizeof(RowRecord));
      std::memcpy(some.data(), bytes.data(), bytes.size());
      std::vector<double> values;
      values.reserve(some.size());
      for (std::size_t column = 0; column < columns.size(); ++column) {
        values.clear();
        for (const RowRecord& record : some) {
          if (!std::isnan(record[column])) values.push_back(record[column]);
        }
        see(column, values);
      }
    });
  };
  const auto add_up_counts = [&](std::span<std::int64_t> counts) { add_up(ranks, counts); };
  find_medians(columns, each_value,
               distributes && ranks.count() > 1 ? AddUp(add_up_counts) : AddUp());
  stats.means = columns[0];
  stats.variances = columns[1];
  return stats;
}

}  // namespace lnorm
