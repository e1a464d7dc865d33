#include "lnorm/pipeline/run.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace lnorm {

namespace {

// A block under way, in buffers that the next block will use again.
struct Slot {
  std::vector<std::byte> in;
  std::vector<std::byte> out;
  std::string text;  // if that is what out is encoded as
  std::span<const std::byte> encoded;
  std::vector<double> mean;
  std::vector<double> rstd;
  std::vector<std::unique_ptr<BlockFindings>> findings;  // of every observer
  RowBlock rows{};
};

}  // namespace

std::unique_ptr<BlockFindings> RowObserver::examine(const RowBlock&) const { return nullptr; }

void run(TensorSource& source, const Plan& plan, const Transform& transform,
         std::span<RowObserver* const> observers, TensorSink* sink, const RunOptions& options) {
  const auto row_length = static_cast<std::size_t>(plan.row_length);
  const std::size_t in_row_bytes = row_length * item_size(plan.in);
  const std::size_t out_row_bytes = row_length * item_size(plan.out);
  // Rows of no elements still have a mean, which is not a number, for those who ask.
  const std::int64_t rows = row_length > 0 || plan.stats ? plan.rows : 0;
  const std::int64_t blocks = (rows + plan.block_rows - 1) / plan.block_rows;
  const Crew crew(options.threads, blocks);
  std::vector<Slot> slots(crew.slots());
  const bool positions = sink != nullptr && sink->has_positions();

  const auto begin = [&](std::int64_t block, std::size_t s) {
    Slot& slot = slots[s];
    const std::int64_t first = block * plan.block_rows;
    const std::int64_t count = std::min(plan.block_rows, rows - first);
    const auto bytes = static_cast<std::size_t>(count) * in_row_bytes;
    if (source.has_positions()) {
      slot.in.resize(bytes);
    } else {
      source.read(slot.in, bytes);
    }
    slot.rows.first_row = first;
    slot.rows.x = {slot.in.data(), plan.in, source.info().byte_order, count, plan.row_length};
  };
  const auto work = [&](std::int64_t, std::size_t s) {
    Slot& slot = slots[s];
    RowBlock& block = slot.rows;
    const auto block_rows = static_cast<std::size_t>(block.x.rows);
    if (source.has_positions()) {
      source.read_at(block.first_row * static_cast<std::int64_t>(in_row_bytes), slot.in);
    }
    slot.mean.assign(plan.stats ? block_rows : 0, std::numeric_limits<double>::quiet_NaN());
    slot.rstd = slot.mean;
    slot.out.resize(block_rows * out_row_bytes);
    block.y = {slot.out.data(), plan.out};
    block.mean = slot.mean;
    block.rstd = slot.rstd;
    if (row_length > 0) {
      transform(block.x, block.y,
                {plan.stats ? slot.mean.data() : nullptr, plan.stats ? slot.rstd.data() : nullptr});
    }
    slot.findings.clear();
    if (positions) {
      sink->write_at(block.first_row * static_cast<std::int64_t>(out_row_bytes), slot.out);
    } else if (sink != nullptr) {
      slot.encoded = sink->encode(block.first_row * plan.row_length, slot.out, slot.text);
    }
    for (const RowObserver* observer : observers) slot.findings.push_back(observer->examine(block));
  };
  const auto end = [&](std::int64_t, std::size_t s) {
    const Slot& slot = slots[s];
    for (std::size_t i = 0; i < observers.size(); ++i) {
      observers[i]->see(slot.rows, slot.findings[i].get());
    }
    if (sink != nullptr && !positions) sink->write(slot.encoded);
    if (options.progress) {
      options.progress((slot.rows.first_row + slot.rows.x.rows) * plan.row_length);
    }
  };
  crew.run(blocks, begin, work, end);
  source.finish();
  for (RowObserver* observer : observers) observer->finish();
  if (sink != nullptr) sink->finish();
}

}  // namespace lnorm
