#include "lnorm/pipeline/long_rows.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "lnorm/kernel/row_normalizer.hpp"
#include "lnorm/layout/row_sink.hpp"
#include "lnorm/layout/row_source.hpp"
#include "lnorm/pipeline/long_row_group.hpp"

namespace lnorm {

namespace {

struct RowBuffers {
  TileBuffer in;
  Tile tile{};   // that was read
  Tile block{};  // some rows of it
  std::vector<std::byte> buffer;
  const std::byte* rows = nullptr;  // of the block, in one of the two
  TileBuffer out;
  TileBuffer sum;
};

// Some rows, which lie in the source.
class RowGroup : LongRowGroup<RowNormalizer, Sums, RowBuffers> {
 public:
  RowGroup(const RowSource& source, const Plan& plan, const Backend& backend, const Affine& affine,
           const Tile& tile, const RunOptions& options)
      : LongRowGroup(plan, tile, options), source_(source) {
    const RowSetting setting{
        backend, plan.in, plan.out, plan.row_length, affine, plan.formula, plan.wants_mean_and_rstd,
        true};
    const Tile first{tile.first_row, tile.rows, 0, 1};
    read(first, slots_.front());
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      rows_.push_back(std::make_unique<RowNormalizer>(
          setting.of_row(tile.first_row + r), sample_of(row_in(slots_.front(), r)),
          [this, r](const auto& see) { read_row(r, see); }));
    }
  }

  void normalize(const RowNumbersOut& wanted, RowSink& sink, SumWriter* sum) {
    sum_up([&](const Tile& tile, Slot& slot) { read(tile, slot); },
           [&](const Tile&, Slot& slot, std::int64_t r) { return row(r).sums(row_in(slot, r)); });
    for (std::size_t r = 0; r < rows_.size(); ++r) rows_[r]->save(wanted, r);
    write(sink, sum);
  }

 private:
  void read(const Tile& tile, Slot& slot) const {
    source_.hold(tile, slot.in);
    slot.tile = slot.block = tile;
    slot.block.rows = 0;
  }

  // Rows from number r of the tile on.
  void take_block(Slot& slot, std::int64_t r, std::int64_t rows) const {
    slot.block.first_row = slot.tile.first_row + r;
    slot.block.rows = std::min(rows, slot.tile.rows - r);
    slot.rows = source_.rows_of(slot.block, slot.tile, slot.in, slot.buffer);
  }

  RowsIn block_in(const Slot& slot) const {
    return {slot.rows, plan_.in, source_.info().byte_order, slot.block.rows, slot.block.count};
  }

  // What the tile that was read has of its row r.
  RowsIn row_in(Slot& slot, std::int64_t r) const {
    // Together they stay in the L2 cache until all of them have been asked for.
    constexpr std::int64_t kBlockRows = 64;
    const std::int64_t number = slot.tile.first_row + r;
    if (number < slot.block.first_row || number >= slot.block.first_row + slot.block.rows) {
      take_block(slot, r - r % kBlockRows, kBlockRows);
    }
    return row_of(block_in(slot), number - slot.block.first_row);
  }

  // Row r once more, by whoever needs it.
  template <class See>
  void read_row(std::int64_t r, const See& see) const {
    Slot slot;
    for_each_part_of(r, [&](const Tile& tile) {
      read(tile, slot);
      see(row_in(slot, 0));
    });
  }

  void write(RowSink& sink, SumWriter* sum) {
    write_parts(
        [&](const Tile& tile, Slot& slot) {
          read(tile, slot);
          slot.out.rows.resize(tile.bytes(item_size(plan_.out)));
          const RowsOut out{
              .data = slot.out.rows.data(), .dtype = plan_.out, .saturates = plan_.saturates};
          if (sum != nullptr) take_block(slot, 0, tile.rows);
          for (std::int64_t r = 0; r < tile.rows; ++r) {
            row(r).write(row_in(slot, r), tile.first, row_of(out, tile.count, r));
          }
          sink.put(tile, slot.out.rows, slot.out);
          if (sum != nullptr) sum->put(tile, block_in(slot), slot.sum);
        },
        [&](Slot& slot) {
          sink.write(slot.out);
          if (sum != nullptr) sum->write(slot.sum);
        });
  }

  const RowSource& source_;
};

}  // namespace

void run_long_rows(TensorSource& given, const Plan& plan, const Backend& backend,
                   const Affine& affine, std::span<RowObserver* const> observers, TensorSink& sink,
                   const RunOptions& wanted, SumWriter* sum) {
  check_same(*wanted.ranks, given.info());
  Participants participants(*wanted.ranks, can_distribute(given, plan.route.in) &&
                                               can_distribute(sink, plan.route.out) &&
                                               (sum == nullptr || sum->takes_parts()));
  if (!wanted.ranks->is_first()) {
    for (RowObserver* observer : observers) observer->skip();
    observers = {};
  }
  Ranks* const ranks = participants.ranks();
  if (ranks == nullptr) {
    sink.skip();
    if (sum != nullptr) sum->skip();
    return;
  }
  const RunOptions options{wanted.threads, wanted.progress, ranks};
  const ForEachTile for_each = for_each_tile(options.threads);
  RowSource source(given, plan.in_view, plan.route.in, for_each);
  RowSink out(sink, plan.result(), plan.out_view, plan.route.out, for_each);
  Tile tile = plan.first_tile();
  std::vector<double> mean;
  std::vector<double> rstd;
  std::vector<double> variance;
  for (; tile.first_row < plan.rows; tile.first_row += tile.rows) {
    tile.rows = std::min(tile.rows, plan.rows - tile.first_row);
    const bool is_asked = plan.wants_mean_and_rstd && !observers.empty();
    mean.resize(is_asked ? static_cast<std::size_t>(tile.rows) : 0);
    rstd.resize(mean.size());
    variance.resize(plan.wants_variance ? mean.size() : 0);
    RowGroup(source, plan, backend, affine, tile, options)
        .normalize({room(mean), room(rstd), room(variance)}, out, sum);
    const RowBlock block{tile.first_row, {}, {}, mean, rstd, variance};
    for (RowObserver* observer : observers) observer->see(block, {});
  }
  source.finish();
  for (RowObserver* observer : observers) observer->finish();
  out.finish();
  if (sum != nullptr) sum->finish();
}

}  // namespace lnorm
