#include "lnorm/pipeline/long_gradients.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lnorm/kernel/row_gradient.hpp"

namespace lnorm {

namespace {

// Some rows, which lie in the sources.
class GradientGroup {
 public:
  // tile: their first parts, of as many elements as the others but the last.
  GradientGroup(GradientRows& source, const GradPlan& plan, const GradientSetting& setting,
                const Tile& tile, const RunOptions& options)
      : source_(source),
        plan_(plan.rows),
        tile_(tile),
        parts_((plan.rows.row_length + tile.count - 1) / tile.count),
        progress_(options.progress),
        crew_(crew_of(plan.rows, options.threads)),
        slots_(crew_.slots()) {
    source_.begin_saved(tile, saved_);
    source_.read_saved(tile, saved_);
    const Tile first{tile.first_row, tile.rows, 0, 1};
    GradientRows::Room& room = slots_.front().in;
    source_.read(first, room);
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      rows_.push_back(std::make_unique<RowGradient>(
          setting, sample_of(source_.part(first, room, r).x), GradientRows::saved(saved_, r),
          [this, r](const auto& see) { read_row(r, see); }));
    }
  }

  void run(RowSink* dx, ColumnGradients* columns) {
    sum_up();
    write(dx, columns);
  }

 private:
  struct Slot {
    GradientRows::Room in;
    std::vector<std::byte> out;
    std::vector<std::byte> packed;
    std::string text;  // if that is what out is encoded as
    std::span<const std::byte> encoded;
    std::vector<GradientSums> sums;
  };

  // Part p of all rows of the group.
  Tile part(std::int64_t p) const {
    const std::int64_t first = p * tile_.count;
    return {tile_.first_row, tile_.rows, first, std::min(tile_.count, plan_.row_length - first)};
  }

  // Row r once more, by whoever needs it.
  template <class See>
  void read_row(std::int64_t r, const See& see) const {
    GradientRows::Room room;
    for (std::int64_t p = 0; p < parts_; ++p) {
      Tile tile = part(p);
      tile.first_row += r;
      tile.rows = 1;
      source_.read(tile, room);
      see(source_.part(tile, room, 0));
    }
  }

  // Elements of the group that may be told as done: half of them for each of the two passes.
  void tell(std::int64_t halves) {
    told_ = std::max(told_, halves / 2);
    if (progress_) progress_(tile_.first_row * plan_.row_length + told_);
  }

  void sum_up() {
    for (;;) {
      std::vector<std::int64_t> wanting;
      for (std::int64_t r = 0; r < tile_.rows; ++r) {
        if (row(r).wants_sums()) wanting.push_back(r);
      }
      if (wanting.empty()) return;
      std::vector<GradientSums> totals(wanting.size());
      crew_.run(
          parts_, {},
          [&](std::int64_t p, std::size_t s) {
            const Tile tile = part(p);
            Slot& slot = slots_[s];
            source_.read(tile, slot.in);
            slot.sums.clear();
            for (const std::int64_t r : wanting) {
              slot.sums.push_back(row(r).sums(source_.part(tile, slot.in, r)));
            }
          },
          [&](std::int64_t p, std::size_t s) {
            for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += slots_[s].sums[i];
            const Tile tile = part(p);
            tell(tile.rows * (tile.first + tile.count));
          });
      for (std::size_t i = 0; i < totals.size(); ++i) row(wanting[i]).take(totals[i]);
    }
  }

  void write(RowSink* sink, ColumnGradients* columns) {
    crew_.run(
        parts_, {},
        [&](std::int64_t p, std::size_t s) {
          Slot& slot = slots_[s];
          const Tile tile = part(p);
          source_.read(tile, slot.in);
          if (sink != nullptr) slot.out.resize(tile.bytes(item_size(plan_.out)));
          for (std::int64_t r = 0; r < tile.rows; ++r) {
            RowsOut dx{nullptr, plan_.out};
            if (sink != nullptr) dx = row_of({slot.out.data(), plan_.out}, tile.count, r);
            row(r).write(source_.part(tile, slot.in, r), dx, columns);
          }
          if (sink != nullptr) slot.encoded = sink->put(tile, slot.out, slot.packed, slot.text);
        },
        [&](std::int64_t p, std::size_t s) {
          const Tile tile = part(p);
          if (sink != nullptr) sink->write(slots_[s].encoded);
          tell(tile.rows * (plan_.row_length + tile.first + tile.count));
        });
  }

  RowGradient& row(std::int64_t r) { return *rows_[static_cast<std::size_t>(r)]; }

  GradientRows& source_;
  const Plan& plan_;
  Tile tile_;
  std::int64_t parts_;
  GradientRows::Room saved_;
  std::vector<std::unique_ptr<RowGradient>> rows_;
  const Progress& progress_;
  Crew crew_;
  std::vector<Slot> slots_;
  std::int64_t told_ = 0;
};

}  // namespace

void long_gradients(GradientRows& rows, const GradPlan& plan, const GradientSetting& setting,
                    RowSink* dx, ColumnGradients* columns, const RunOptions& options) {
  Tile tile = plan.rows.first_tile();
  for (; tile.first_row < plan.rows.rows; tile.first_row += tile.rows) {
    tile.rows = std::min(tile.rows, plan.rows.rows - tile.first_row);
    GradientGroup(rows, plan, setting, tile, options).run(dx, columns);
  }
}

RowsAgain long_rows_again(GradientRows& rows, const GradPlan& plan, const RunOptions& options) {
  constexpr std::int64_t kPart = 65536;  // elements
  const Plan& layout = plan.rows;
  const Crew crew(options.threads, layout.rows);
  const auto for_each_row = [&, crew](const auto& see) {
    // One by one, rows that lie among each other would be read an element at a time.
    if (layout.route.rows > 1 && !layout.in_view.is_contiguous()) {
      rows.line_up(for_each_tile(options.threads));
    }
    std::vector<GradientRows::Room> rooms(crew.slots());
    crew.run(layout.rows, {},
             [&](std::int64_t row, std::size_t slot) {
               GradientRows::Room& room = rooms[slot];
               Tile tile{row, 1, 0, 0};
               rows.read_saved(tile, room);
               const auto read_row = [&](const auto& see_part) {
                 for (tile.first = 0; tile.first < layout.row_length; tile.first += tile.count) {
                   tile.count = std::min(kPart, layout.row_length - tile.first);
                   rows.read(tile, room);
                   see_part(rows.part(tile, room, 0));
                 }
               };
               see(slot, read_row, GradientRows::saved(room, 0));
             },
             {});
  };
  return {crew.slots(), for_each_row};
}

}  // namespace lnorm
