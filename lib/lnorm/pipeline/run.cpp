#include "lnorm/pipeline/run.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/layout/row_sink.hpp"
#include "lnorm/layout/row_source.hpp"

namespace lnorm {

namespace {

// A tile under way, in buffers that the next one will use again.
struct Slot {
  Tile tile{};
  TileBuffer in;
  TileBuffer out;
  std::vector<std::byte> x;  // of a block
  std::vector<std::byte> y;
  std::string text;  // if that is what out is encoded as
  std::span<const std::byte> encoded;
  std::vector<double> mean;
  std::vector<double> rstd;
  std::vector<RowBlock> blocks;
  std::vector<BlockFindings> findings;  // of every observer of every block
};

}  // namespace

Executor executor_for(const Plan& plan, int threads, const TensorSink* sink) {
  const Route& route = plan.route;
  std::int64_t bytes = route.bytes;
  if (sink != nullptr && !sink->has_random_access() && route.block_rows < route.rows) {
    // A pipe takes whole tiles, in order.
    bytes += route.rows * route.count * static_cast<std::int64_t>(item_size(plan.out));
  }
  const std::int64_t all = route.in_parts ? plan.row_length : plan.rows;
  const std::int64_t at_a_time = route.in_parts ? route.count : route.rows;
  return {threads, (all + at_a_time - 1) / at_a_time, bytes};
}

void run(TensorSource& given, const Plan& plan, const Transform& transform,
         std::span<RowObserver* const> observers, TensorSink* sink, const RunOptions& options) {
  // Rows of no elements still have a mean, which is not a number, for those who ask.
  const bool wants_rows = plan.row_length > 0 || plan.wants_mean_and_rstd || plan.wants_empty_rows;
  const std::int64_t rows = wants_rows ? plan.rows : 0;
  const std::int64_t tiles = (rows + plan.route.rows - 1) / plan.route.rows;
  Ranks& ranks = *options.ranks;
  check_same(ranks, given.info());
  const bool distributes = all_of(
      ranks, can_distribute(given, plan.route.in) &&
                 (sink == nullptr || can_distribute(*sink, plan.route.out)) &&
                 std::all_of(observers.begin(), observers.end(),
                             [](const RowObserver* observer) { return observer->takes_parts(); }));
  if (!distributes && !ranks.is_first()) {
    if (sink != nullptr) sink->skip();
    for (RowObserver* observer : observers) observer->skip();
    for (RowObserver* observer : observers) observer->merge(ranks);
    return;
  }
  const BlockRange range = block_range_of(tiles, ranks, distributes);
  const Executor executor = executor_for(plan, options.threads, sink);
  std::vector<Slot> slots(executor.slots());
  const ForEachTile for_each = for_each_tile(options.threads);
  RowSource source(given, plan.in_view, plan.route.in, for_each);
  std::optional<RowSink> out;
  if (sink != nullptr) out.emplace(*sink, plan.result(), plan.out_view, plan.route.out, for_each);

  const auto work_on = [&](const Tile& block, Slot& slot) {
    const std::byte* x = source.rows_of(block, slot.tile, slot.in, slot.x);
    if (!out) slot.y.resize(block.bytes(item_size(plan.out)));
    std::byte* y = out ? out->buffer_for(block, slot.tile, slot.out, slot.y) : slot.y.data();
    const auto numbers = [&](std::vector<double>& of_tile) {
      if (of_tile.empty()) return std::span<double>();
      return std::span(of_tile).subspan(
          static_cast<std::size_t>(block.first_row - slot.tile.first_row),
          static_cast<std::size_t>(block.rows));
    };
    const std::span<double> mean = numbers(slot.mean);
    const std::span<double> rstd = numbers(slot.rstd);
    const RowBlock rows_of_block{
        block.first_row,
        {x, plan.in, source.info().byte_order, block.rows, plan.row_length},
        {.data = y, .dtype = plan.out, .saturates = plan.saturates},
        mean,
        rstd};
    if (plan.row_length > 0) {
      transform(rows_of_block.x, rows_of_block.y,
                {mean.empty() ? nullptr : mean.data(), rstd.empty() ? nullptr : rstd.data()});
    }
    if (out) out->put_block(block, slot.tile, slot.out, slot.y);
    for (const RowObserver* observer : observers) {
      slot.findings.push_back(observer->examine(rows_of_block));
    }
    slot.blocks.push_back(rows_of_block);
  };

  const auto begin = [&](std::int64_t number, std::size_t s) {
    Slot& slot = slots[s];
    const std::int64_t first = (range.begin + number) * plan.route.rows;
    slot.tile = {first, std::min(plan.route.rows, rows - first), 0, plan.row_length};
    source.begin(slot.tile, slot.in.packed, slot.in.rows);
  };
  const auto work = [&](std::int64_t, std::size_t s) {
    Slot& slot = slots[s];
    source.hold(slot.tile, slot.in);
    slot.mean.assign(plan.wants_mean_and_rstd ? static_cast<std::size_t>(slot.tile.rows) : 0,
                     std::numeric_limits<double>::quiet_NaN());
    slot.rstd = slot.mean;
    slot.findings.clear();
    slot.blocks.clear();
    Tile block = slot.tile;
    const std::int64_t end = block.first_row + block.rows;
    for (; block.first_row < end; block.first_row += block.rows) {
      block.rows = std::min(plan.route.block_rows, end - block.first_row);
      work_on(block, slot);
    }
    if (out) slot.encoded = out->put_tile(slot.tile, slot.out, slot.text);
  };
  const auto end = [&](std::int64_t, std::size_t s) {
    const Slot& slot = slots[s];
    auto findings = slot.findings.begin();
    for (const RowBlock& block : slot.blocks) {
      for (RowObserver* observer : observers) observer->see(block, *findings++);
    }
    if (out) out->write(slot.encoded);
    ranks.check();
    if (options.progress) {
      // The others are about as far.
      const std::int64_t done = slot.tile.first_row + slot.tile.rows;
      options.progress(std::min(done * (distributes ? ranks.count() : 1), rows) * plan.row_length);
    }
  };
  executor.run(range.size(), begin, work, end);
  source.finish();
  for (RowObserver* observer : observers) observer->finish();
  if (out) out->finish();
  for (RowObserver* observer : observers) observer->merge(ranks);
}

}  // namespace lnorm
