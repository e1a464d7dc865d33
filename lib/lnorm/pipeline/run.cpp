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

// A block under way, in buffers that the next block will use again.
struct Slot {
  std::vector<std::byte> in;
  std::vector<std::byte> out;
  std::vector<std::byte> packed;  // in or out as it lies in the file, where that is another order
  std::string text;               // if that is what out is encoded as
  std::span<const std::byte> encoded;
  std::vector<double> mean;
  std::vector<double> rstd;
  std::vector<BlockFindings> findings;  // of every observer
  RowBlock rows{};
};

}  // namespace

Crew crew_of(const Plan& plan, int threads) {
  const Route& route = plan.route;
  const std::int64_t all = route.in_parts ? plan.row_length : plan.rows;
  const std::int64_t at_a_time = route.in_parts ? route.count : route.rows;
  return {threads, (all + at_a_time - 1) / at_a_time, route.bytes};
}

void run(TensorSource& given, const Plan& plan, const Transform& transform,
         std::span<RowObserver* const> observers, TensorSink* sink, const RunOptions& options) {
  // Rows of no elements still have a mean, which is not a number, for those who ask.
  const std::int64_t rows = plan.row_length > 0 || plan.wants_mean_and_rstd ? plan.rows : 0;
  const std::int64_t blocks = (rows + plan.route.rows - 1) / plan.route.rows;
  const Crew crew = crew_of(plan, options.threads);
  std::vector<Slot> slots(crew.slots());
  const ForEachTile for_each = for_each_tile(options.threads);
  RowSource source(given, plan.in_view, plan.route.in, for_each);
  std::optional<RowSink> out;
  if (sink != nullptr) out.emplace(*sink, plan.result(), plan.out_view, plan.route.out, for_each);
  const auto tile_of = [&](const RowBlock& block) {
    return Tile{block.first_row, block.x.rows, 0, plan.row_length};
  };

  const auto begin = [&](std::int64_t block, std::size_t s) {
    Slot& slot = slots[s];
    const std::int64_t first = block * plan.route.rows;
    const std::int64_t count = std::min(plan.route.rows, rows - first);
    slot.rows.first_row = first;
    slot.rows.x = {nullptr, plan.in, source.info().byte_order, count, plan.row_length};
    source.begin(tile_of(slot.rows), slot.packed, slot.in);
  };
  const auto work = [&](std::int64_t, std::size_t s) {
    Slot& slot = slots[s];
    RowBlock& block = slot.rows;
    const auto block_rows = static_cast<std::size_t>(block.x.rows);
    const Tile tile = tile_of(block);
    source.read(tile, slot.packed, slot.in);
    block.x.data = slot.in.data();
    slot.mean.assign(plan.wants_mean_and_rstd ? block_rows : 0,
                     std::numeric_limits<double>::quiet_NaN());
    slot.rstd = slot.mean;
    slot.out.resize(tile.bytes(item_size(plan.out)));
    block.y = {.data = slot.out.data(), .dtype = plan.out, .saturates = plan.saturates};
    block.mean = slot.mean;
    block.rstd = slot.rstd;
    if (plan.row_length > 0) {
      transform(block.x, block.y,
                {plan.wants_mean_and_rstd ? slot.mean.data() : nullptr,
                 plan.wants_mean_and_rstd ? slot.rstd.data() : nullptr});
    }
    slot.findings.clear();
    if (out) slot.encoded = out->put(tile, slot.out, slot.packed, slot.text);
    for (const RowObserver* observer : observers) slot.findings.push_back(observer->examine(block));
  };
  const auto end = [&](std::int64_t, std::size_t s) {
    const Slot& slot = slots[s];
    for (std::size_t i = 0; i < observers.size(); ++i) {
      observers[i]->see(slot.rows, slot.findings[i]);
    }
    if (out) out->write(slot.encoded);
    if (options.progress) {
      options.progress((slot.rows.first_row + slot.rows.x.rows) * plan.row_length);
    }
  };
  crew.run(blocks, begin, work, end);
  source.finish();
  for (RowObserver* observer : observers) observer->finish();
  if (out) out->finish();
}

}  // namespace lnorm
