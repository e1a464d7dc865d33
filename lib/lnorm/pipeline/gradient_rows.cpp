#include "lnorm/pipeline/gradient_rows.hpp"

#include <algorithm>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/block_loop.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

namespace {

// What has one number a row.
Tile numbers_of(const Tile& tile) { return {tile.first_row, tile.rows, 0, 1}; }

// Columns for a thread that is at work, not for each block under way: where rows are long they are large.
std::unique_ptr<ColumnGradients> take(Pool<ColumnGradients>& pool, std::int64_t columns) {
  return pool.take([&] { return std::make_unique<ColumnGradients>(columns); });
}

}  // namespace

void check_same(Ranks& ranks, const GradSources& sources) {
  for (const TensorSource* const source : {&sources.x, &sources.dy, sources.mean, sources.rstd}) {
    if (source != nullptr) check_same(ranks, source->info());
  }
}

bool can_distribute(const GradSources& sources, const GradPlan& plan) {
  return can_distribute(sources.x, plan.rows.route.in) && can_distribute(sources.dy, plan.dy) &&
         (sources.mean == nullptr || can_distribute(*sources.mean, plan.mean)) &&
         (sources.rstd == nullptr || can_distribute(*sources.rstd, plan.rstd));
}

GradientRows::GradientRows(const GradSources& sources, const GradPlan& plan,
                           const ForEachTile& for_each_tile)
    : x_(sources.x, plan.rows.in_view, plan.rows.route.in, for_each_tile),
      dy_(sources.dy, plan.rows.in_view, plan.dy, for_each_tile),
      are_constants_(sources.are_constants),
      spread_name_(sources.rstd != nullptr ? sources.rstd->info().name : "") {
  const RowView& numbers = plan.rows.row_number_view;
  mean_ = saved(sources.mean, numbers, plan.mean, for_each_tile);
  rstd_ = saved(sources.rstd, numbers, plan.rstd, for_each_tile);
}

std::optional<GradientRows::Saved> GradientRows::saved(TensorSource* source, const RowView& numbers,
                                                       const IoPath& io_path,
                                                       const ForEachTile& for_each_tile) {
  if (source == nullptr) return {};
  Saved result;
  if (source->info().shape.empty()) {
    const TensorInfo& info = source->info();
    const std::vector<std::byte> bytes = read_all(*source);
    result.number = element_of({bytes.data(), info.dtype, info.byte_order, 1, 1}, 0);
  } else {
    result.rows.emplace(*source, numbers, io_path, for_each_tile);
  }
  return result;
}

void GradientRows::begin(const Tile& tile, Buffers& buffer) {
  x_.begin(tile, buffer.x);
  dy_.begin(tile, buffer.dy);
  begin_saved(tile, buffer);
}

void GradientRows::read_rows(const Tile& tile, Buffers& buffer) const {
  read(tile, buffer);
  read_saved(tile, buffer);
}

void GradientRows::read(const Tile& tile, Buffers& buffer) const {
  x_.read(tile, buffer.x);
  dy_.read(tile, buffer.dy);
}

void GradientRows::begin_saved(const Tile& tile, Buffers& buffer) {
  if (mean_ && mean_->rows) mean_->rows->begin(numbers_of(tile), buffer.mean);
  if (rstd_ && rstd_->rows) rstd_->rows->begin(numbers_of(tile), buffer.rstd);
}

void GradientRows::read_saved(const Tile& tile, Buffers& buffer) const {
  if (!rstd_) return;
  const Tile numbers = numbers_of(tile);
  buffer.saved.assign(static_cast<std::size_t>(tile.rows), {});
  const auto take = [&](const Saved& source, TileBuffer& bytes, auto number) {
    if (!source.rows) {
      for (SavedStatistics& saved : buffer.saved) saved.*number = source.number;
      return;
    }
    source.rows->read(numbers, bytes);
    // They are held as one row.
    const Tile row{0, 1, 0, tile.rows};
    for_each_element(rows_in(*source.rows, row, bytes), [&](std::int64_t r, Number value) {
      buffer.saved[static_cast<std::size_t>(r)].*number = value;
    });
  };
  if (mean_) take(*mean_, buffer.mean, &SavedStatistics::mean);
  if (!are_constants_) return take(*rstd_, buffer.rstd, &SavedStatistics::rstd);
  take(*rstd_, buffer.rstd, &SavedStatistics::variance);
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const double variance = saved(buffer, r)->variance->high;
    if (!(variance < 0)) continue;
    const std::string row = rstd_->rows ? concat(" for row ", tile.first_row + r) : std::string();
    throw Error(concat(printable(spread_name_), ": is ", variance, row,
                       ", expected a variance, 0 or more"));
  }
}

void GradientRows::find(const GradientSetting& setting, const AffineLayout& layout,
                        const Tile& tile, const Buffers& buffer, const RowsOut& dx,
                        Pool<ColumnGradients>* columns) const {
  const auto find = [&](const auto&... how) {
    layer_norm_backward(setting.backend, x(tile, buffer), dy(tile, buffer), dx, setting.weight,
                        how...);
  };
  const SavedStatistics* const saved = GradientRows::saved(buffer, 0);
  if (columns == nullptr) return find(layout, setting.formula, saved);
  auto gathered = take(*columns, tile.count);
  find(setting.formula, saved, gathered.get());
  columns->give(std::move(gathered));
}

RowReplay GradientRows::again(const Plan& plan, const RunOptions& options) {
  const bool in_parts = plan.route.in_parts;
  const LoopExtent extent{plan.rows, in_parts ? 1 : plan.route.rows};
  const auto own_rows = [extent, &options] {
    return block_range_of(extent.blocks(), *options.ranks).size();
  };
  const Executor executor =
      in_parts ? Executor(options.threads, own_rows()) : executor_for(plan, options.threads);
  const auto see_in_parts = [this, &plan](const Block& row, std::size_t slot, Buffers& buffer,
                                          const auto& see) {
    static constexpr std::int64_t kPart = 65536;  // elements
    read_saved({row.first, 1, 0, 0}, buffer);
    const auto read_row = [&](const auto& see_part) {
      Buffers part_buffer;  // whoever sees a part may read the row once more
      Tile tile{row.first, 1, 0, 0};
      for (; tile.first < plan.row_length; tile.first += tile.count) {
        tile.count = std::min(kPart, plan.row_length - tile.first);
        read(tile, part_buffer);
        see_part(part(tile, part_buffer, 0));
      }
    };
    see(slot, read_row, saved(buffer, 0));
  };
  const auto for_each_row = [=, this, &plan, &options](const auto& see) {
    if (in_parts && own_rows() == 0) return;
    // One by one, rows in parts that lie among each other would be read an element at a time.
    if (in_parts && plan.route.rows > 1 && !plan.in_view.is_contiguous()) {
      x_.line_up(for_each_tile(options.threads));
      dy_.line_up(for_each_tile(options.threads));
    }
    std::vector<Buffers> slots(executor.slots());
    for_each_block(
        extent, executor, {options.threads, {}, options.ranks}, slots, nullptr,
        [&](const Block& block, Buffers& buffer) {
          const auto slot = static_cast<std::size_t>(&buffer - slots.data());
          if (in_parts) return see_in_parts(block, slot, buffer, see);
          const Tile tile{block.first, block.count, 0, plan.row_length};
          read_rows(tile, buffer);
          replay(slot, x(tile, buffer), dy(tile, buffer), saved(buffer, 0), see);
        },
        [](const Block&, Buffers&) {});
  };
  return {executor.slots(), for_each_row};
}

void GradientRows::finish() {
  x_.finish();
  dy_.finish();
  for (std::optional<Saved>* const saved : {&mean_, &rstd_}) {
    if (*saved && (*saved)->rows) (*saved)->rows->finish();
  }
}

std::unique_ptr<ColumnGradients> merged(Pool<ColumnGradients>& pool, std::int64_t columns) {
  auto sum = take(pool, columns);
  for (const auto& other : pool.idle()) sum->merge(*other);
  return sum;
}

}  // namespace lnorm
