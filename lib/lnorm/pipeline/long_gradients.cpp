#include "lnorm/pipeline/long_gradients.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lnorm/kernel/row_gradient.hpp"
#include "lnorm/pipeline/long_row_group.hpp"

namespace lnorm {

namespace {

// Some rows, which lie in the sources.
class GradientGroup : LongRowGroup<RowGradient, GradientSums> {
 public:
  GradientGroup(GradientRows& source, const GradPlan& plan, const GradientSetting& setting,
                const Tile& tile, const RunOptions& options)
      : LongRowGroup(plan.rows, tile, options), source_(source), slots_(executor_.slots()) {
    source_.begin_saved(tile, saved_);
    source_.read_saved(tile, saved_);
    const Tile first{tile.first_row, tile.rows, 0, 1};
    GradientRows::Buffers& buffer = slots_.front().in;
    source_.read(first, buffer);
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      rows_.push_back(std::make_unique<RowGradient>(
          setting, sample_of(source_.part(first, buffer, r).x), GradientRows::saved(saved_, r),
          [this, r](const auto& see) { read_row(r, see); }));
    }
  }

  void run(RowSink* dx, ColumnGradients* columns) {
    sum_up([&](const Tile& tile, std::size_t s) { source_.read(tile, slots_[s].in); },
           [&](const Tile& tile, std::size_t s, std::int64_t r) {
             return row(r).sums(source_.part(tile, slots_[s].in, r));
           });
    write(dx, columns);
  }

 private:
  struct Slot {
    GradientRows::Buffers in;
    std::vector<std::byte> out;
    std::vector<std::byte> packed;
    std::string text;  // if that is what out is encoded as
    std::span<const std::byte> encoded;
  };

  // Row r once more, by whoever needs it.
  template <class See>
  void read_row(std::int64_t r, const See& see) const {
    GradientRows::Buffers buffer;
    for_each_part_of(r, [&](const Tile& tile) {
      source_.read(tile, buffer);
      see(source_.part(tile, buffer, 0));
    });
  }

  void write(RowSink* sink, ColumnGradients* columns) {
    write_parts(
        [&](const Tile& tile, std::size_t s) {
          Slot& slot = slots_[s];
          source_.read(tile, slot.in);
          if (sink != nullptr) slot.out.resize(tile.bytes(item_size(plan_.out)));
          for (std::int64_t r = 0; r < tile.rows; ++r) {
            RowsOut dx{nullptr, plan_.out};
            if (sink != nullptr) dx = row_of({slot.out.data(), plan_.out}, tile.count, r);
            row(r).write(source_.part(tile, slot.in, r), dx, columns);
          }
          if (sink != nullptr) slot.encoded = sink->put(tile, slot.out, slot.packed, slot.text);
        },
        [&](const Tile&, std::size_t s) {
          if (sink != nullptr) sink->write(slots_[s].encoded);
        });
  }

  GradientRows& source_;
  GradientRows::Buffers saved_;
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<ColumnGradients> long_columns(const GradPlan& plan, const Ranks& ranks) {
  const BlockRange parts = share_of_parts(plan.rows, ranks);
  const auto column = [&](std::int64_t part) {
    return std::min(part * plan.rows.route.count, plan.rows.row_length);
  };
  const std::int64_t first = column(parts.begin);
  return std::make_unique<ColumnGradients>(column(parts.end) - first, first);
}

void long_gradients(GradientRows& rows, const GradPlan& plan, const GradientSetting& setting,
                    RowSink* dx, ColumnGradients* columns, const RunOptions& options) {
  Tile tile = plan.rows.first_tile();
  for (; tile.first_row < plan.rows.rows; tile.first_row += tile.rows) {
    tile.rows = std::min(tile.rows, plan.rows.rows - tile.first_row);
    GradientGroup(rows, plan, setting, tile, options).run(dx, columns);
  }
}

RowReplay long_row_replay(GradientRows& rows, const GradPlan& plan, const RunOptions& options) {
  static constexpr std::int64_t kPart = 65536;  // elements
  const Plan& layout = plan.rows;
  const BlockRange range = block_range_of(layout.rows, *options.ranks, true);
  const Executor executor(options.threads, range.size());
  const auto for_each_row = [&, executor, range](const auto& see) {
    if (range.size() == 0) return;
    // One by one, rows that lie among each other would be read an element at a time.
    if (layout.route.rows > 1 && !layout.in_view.is_contiguous()) {
      rows.line_up(for_each_tile(options.threads));
    }
    std::vector<GradientRows::Buffers> buffers(executor.slots());
    executor.run(
        range.size(), {},
        [&](std::int64_t number, std::size_t slot) {
          const std::int64_t row = range.begin + number;
          GradientRows::Buffers& saved = buffers[slot];
          rows.read_saved({row, 1, 0, 0}, saved);
          const auto read_row = [&](const auto& see_part) {
            GradientRows::Buffers buffer;  // whoever sees a part may read the row once more
            Tile tile{row, 1, 0, 0};
            for (; tile.first < layout.row_length; tile.first += tile.count) {
              tile.count = std::min(kPart, layout.row_length - tile.first);
              rows.read(tile, buffer);
              see_part(rows.part(tile, buffer, 0));
            }
          };
          see(slot, read_row, GradientRows::saved(saved, 0));
        },
        [&](std::int64_t, std::size_t) { options.ranks->check(); });
  };
  return {executor.slots(), for_each_row};
}

}  // namespace lnorm
