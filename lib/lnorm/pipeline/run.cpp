#include "lnorm/pipeline/run.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/layout/row_sink.hpp"
#include "lnorm/layout/row_source.hpp"
#include "lnorm/pipeline/block_loop.hpp"

namespace lnorm {

namespace {

// A tile under way.
struct Slot {
  Tile tile{};
  TileBuffer in;
  TileBuffer out;
  std::vector<std::byte> x;  // of a block
  std::vector<std::byte> y;
  std::vector<double> mean;
  std::vector<double> rstd;
  std::vector<double> variance;
  std::vector<double> scale;
  std::vector<RowBlock> blocks;
  std::vector<BlockFindings> findings;  // of every observer of every block
};

// Takes tiles of rows, in smaller blocks, through the transform and past the observers.
class TileSteps {
 public:
  TileSteps(RowSource& source, RowSink* out, const Plan& plan, const Transform& transform,
            std::span<RowObserver* const> observers)
      : source_(source), out_(out), plan_(plan), transform_(transform), observers_(observers) {}

  void begin(const Block& rows, Slot& slot) const {
    slot.tile = {rows.first, rows.count, 0, plan_.row_length};
    source_.begin(slot.tile, slot.in);
  }

  void work(Slot& slot) const {
    source_.hold(slot.tile, slot.in);
    slot.mean.assign(plan_.wants_mean_and_rstd ? static_cast<std::size_t>(slot.tile.rows) : 0,
                     kNan);
    slot.rstd = slot.mean;
    slot.variance.assign(plan_.wants_variance ? slot.mean.size() : 0, kNan);
    slot.scale.assign(static_cast<std::size_t>(slot.tile.rows * plan_.scales_of_row), kNan);
    slot.findings.clear();
    slot.blocks.clear();
    Tile block = slot.tile;
    const std::int64_t end = block.first_row + block.rows;
    for (; block.first_row < end; block.first_row += block.rows) {
      block.rows = std::min(plan_.route.block_rows, end - block.first_row);
      work_on(block, slot);
    }
    if (out_ != nullptr) out_->put_tile(slot.tile, slot.out);
  }

  void end(const Slot& slot) const {
    auto findings = slot.findings.begin();
    for (const RowBlock& block : slot.blocks) {
      for (RowObserver* observer : observers_) observer->see(block, *findings++);
    }
    if (out_ != nullptr) out_->write(slot.out);
  }

 private:
  void work_on(const Tile& block, Slot& slot) const {
    const std::byte* x = source_.rows_of(block, slot.tile, slot.in, slot.x);
    const auto numbers = [&](std::vector<double>& of_tile, std::int64_t of_row = 1) {
      if (of_tile.empty()) return std::span<double>();
      return std::span(of_tile).subspan(
          static_cast<std::size_t>((block.first_row - slot.tile.first_row) * of_row),
          static_cast<std::size_t>(block.rows * of_row));
    };
    const std::span<double> mean = numbers(slot.mean);
    const std::span<double> rstd = numbers(slot.rstd);
    const std::span<double> variance = numbers(slot.variance);
    const std::span<double> scale = numbers(slot.scale, plan_.scales_of_row);
    const RowBlock rows_of_block{
        block.first_row,
        {x, plan_.in, source_.info().byte_order, block.rows, plan_.row_length, 0, block.first_row},
        {.data = output_of(block, slot), .dtype = plan_.out, .saturates = plan_.saturates},
        mean,
        rstd,
        variance,
        scale};
    if (plan_.row_length > 0 && transform_) {
      transform_(rows_of_block.x, rows_of_block.y,
                 {room(mean), room(rstd), room(variance), room(scale)});
    }
    if (out_ != nullptr) out_->put_block(block, slot.tile, slot.out, slot.y);
    for (const RowObserver* observer : observers_) {
      slot.findings.push_back(observer->examine(rows_of_block));
    }
    slot.blocks.push_back(rows_of_block);
  }

  // Room for what the transform makes of a block.
  std::byte* output_of(const Tile& block, Slot& slot) const {
    if (!transform_) return nullptr;
    if (out_ != nullptr) return out_->buffer_for(block, slot.tile, slot.out, slot.y);
    slot.y.resize(block.bytes(item_size(plan_.out)));
    return slot.y.data();
  }

  RowSource& source_;
  RowSink* out_;
  const Plan& plan_;
  const Transform& transform_;
  std::span<RowObserver* const> observers_;
};

// Every rank can take a part: source, sink and observers let it.
bool can_distribute(const TensorSource& source, const Plan& plan,
                    std::span<RowObserver* const> observers, const TensorSink* sink) {
  return can_distribute(source, plan.route.in) &&
         (sink == nullptr || can_distribute(*sink, plan.route.out)) &&
         std::all_of(observers.begin(), observers.end(),
                     [](const RowObserver* observer) { return observer->takes_parts(); });
}

// What one rank does.
void run_share(TensorSource& given, const Plan& plan, const Transform& transform,
               std::span<RowObserver* const> observers, TensorSink* sink,
               const RunOptions& options) {
  const ForEachTile for_each = for_each_tile(options.threads);
  RowSource source(given, plan.in_view, plan.route.in, for_each);
  std::optional<RowSink> out;
  if (sink != nullptr) out.emplace(*sink, plan.result(), plan.out_view, plan.route.out, for_each);
  const TileSteps steps(source, out ? &*out : nullptr, plan, transform, observers);
  // Rows of no elements still have a mean, which is not a number, for those who ask.
  const bool wants_rows = plan.row_length > 0 || plan.wants_mean_and_rstd ||
                          plan.scales_of_row > 0 || plan.wants_empty_rows;
  std::vector<Slot> slots;
  for_each_block(
      {wants_rows ? plan.rows : 0, plan.route.rows, plan.row_length},
      executor_for(plan, options.threads, sink), options, slots,
      [&](const Block& rows, Slot& slot) { steps.begin(rows, slot); },
      [&](const Block&, Slot& slot) { steps.work(slot); },
      [&](const Block&, Slot& slot) { steps.end(slot); });
  source.finish();
  for (RowObserver* observer : observers) observer->finish();
  if (out) out->finish();
}

}  // namespace

Transform normalization(const Backend& backend, const GivenStatistics* given, const Affine& affine,
                        const Formula& formula) {
  return [&backend, given, &affine, &formula](const RowsIn& x, const RowsOut& y,
                                              const RowNumbersOut& computed) {
    if (given != nullptr) return normalize_by(backend, *given, x, y, affine, formula);
    backend.layer_norm(x, y, affine, formula, computed);
  };
}

Transform quantization(const RowQuantizer& quantizer) {
  return [&quantizer](const RowsIn& x, const RowsOut& q, const RowNumbersOut& computed) {
    quantizer.quantize(x, q, computed);
  };
}

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

void run(TensorSource& source, const Plan& plan, const Transform& transform,
         std::span<RowObserver* const> observers, TensorSink* sink, const RunOptions& options) {
  check_same(*options.ranks, source.info());
  Participants participants(*options.ranks, can_distribute(source, plan, observers, sink));
  if (Ranks* const ranks = participants.ranks()) {
    run_share(source, plan, transform, observers, sink, {options.threads, options.progress, ranks});
  } else {
    if (sink != nullptr) sink->skip();
    for (RowObserver* observer : observers) observer->skip();
  }
  for (RowObserver* observer : observers) observer->merge(*options.ranks);
}

}  // namespace lnorm
