#include "lnorm/pipeline/grad.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/parameter_gradients.hpp"
#include "lnorm/kernel/row_gradient.hpp"
#include "lnorm/layout/row_sink.hpp"
#include "lnorm/pipeline/block_loop.hpp"
#include "lnorm/pipeline/long_row_group.hpp"
#include "lnorm/pipeline/row_writer.hpp"

namespace lnorm {

namespace {

struct GradientBuffers {
  GradientRows::Buffers in;
  TileBuffer out;
};

// Some rows that lie in the sources.
class GradientGroup : LongRowGroup<RowGradient, GradientSums, GradientBuffers> {
 public:
  GradientGroup(GradientRows& source, const GradPlan& plan, const GradientSetting& setting,
                const Tile& tile, const RunOptions& options)
      : LongRowGroup(plan.rows, tile, options), source_(source) {
    source_.begin_saved(tile, saved_);
    source_.read_saved(tile, saved_);
    const Tile first{tile.first_row, tile.rows, 0, 1};
    GradientRows::Buffers& buffer = slots_.front().in;
    source_.read(first, buffer);
    weights_.reserve(static_cast<std::size_t>(tile.rows));
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      weights_.push_back(weight_of_row(setting.weight, plan.rows.affine, tile.first_row + r,
                                       plan.rows.row_length));
      const GradientSetting of_row{
          setting.backend,    setting.x,       setting.dy,      setting.dx,
          setting.row_length, weights_.back(), setting.formula, setting.needs_double_doubles};
      rows_.push_back(std::make_unique<RowGradient>(
          of_row, sample_of(source_.part(first, buffer, r).x), GradientRows::saved(saved_, r),
          [this, r](const auto& see) { read_row(r, see); }));
    }
  }

  void run(RowSink* dx, ColumnGradients* columns) {
    sum_up([&](const Tile& tile, Slot& slot) { source_.read(tile, slot.in); },
           [&](const Tile& tile, Slot& slot, std::int64_t r) {
             return row(r).sums(source_.part(tile, slot.in, r));
           });
    write(dx, columns);
  }

 private:
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
        [&](const Tile& tile, Slot& slot) {
          source_.read(tile, slot.in);
          if (sink != nullptr) slot.out.rows.resize(tile.bytes(item_size(plan_.out)));
          for (std::int64_t r = 0; r < tile.rows; ++r) {
            RowsOut dx{nullptr, plan_.out};
            if (sink != nullptr) dx = row_of({slot.out.rows.data(), plan_.out}, tile.count, r);
            row(r).write(source_.part(tile, slot.in, r), dx, columns);
          }
          if (sink != nullptr) sink->put(tile, slot.out.rows, slot.out);
        },
        [&](Slot& slot) {
          if (sink != nullptr) sink->write(slot.out);
        });
  }

  GradientRows& source_;
  GradientRows::Buffers saved_;
  std::vector<AffineTerm> weights_;
};

// The backward pass of rows that go in parts (plan.rows.route.in_parts), as run_long_rows takes them forward, where ranks
// have parts each. dx and columns may be null: they are not wanted.
void long_gradients(GradientRows& rows, const GradPlan& plan, const GradientSetting& setting,
                    RowSink* dx, ColumnGradients* columns, const RunOptions& options) {
  Tile tile = plan.rows.first_tile();
  for (; tile.first_row < plan.rows.rows; tile.first_row += tile.rows) {
    tile.rows = std::min(tile.rows, plan.rows.rows - tile.first_row);
    GradientGroup(rows, plan, setting, tile, options).run(dx, columns);
  }
}

// The backward pass of rows in blocks of whole ones. dx and columns may be null: they are not wanted.
void gradients_of_blocks(GradientRows& rows, const GradPlan& plan, const GradientSetting& setting,
                         RowSink* dx, Pool<ColumnGradients>* columns, const RunOptions& options) {
  const Plan& layout = plan.rows;
  std::vector<GradientBuffers> slots;
  const auto tile_of = [&](const Block& block) {
    return Tile{block.first, block.count, 0, layout.row_length};
  };
  for_each_block(
      {layout.rows, layout.route.rows, layout.row_length}, executor_for(layout, options.threads),
      options, slots,
      [&](const Block& block, GradientBuffers& slot) { rows.begin(tile_of(block), slot.in); },
      [&](const Block& block, GradientBuffers& slot) {
        const Tile tile = tile_of(block);
        rows.read_rows(tile, slot.in);
        RowsOut out{nullptr, layout.out};
        if (dx != nullptr) out.data = dx->buffer_for(tile, tile, slot.out, slot.out.rows);
        rows.find(setting, layout.affine, tile, slot.in, out, columns);
        if (dx == nullptr) return;
        dx->put_block(tile, tile, slot.out, slot.out.rows);
        dx->put_tile(tile, slot.out);
      },
      [&](const Block&, GradientBuffers& slot) {
        if (dx != nullptr) dx->write(slot.out);
      });
}

// In place of rows that rank 0 reads, and of what it writes.
void skip(const GradSinks& sinks) {
  for (TensorSink* const sink : {sinks.dx, sinks.dweight, sinks.dbias}) {
    if (sink != nullptr) sink->skip();
  }
}

// Writes dx, if there is a sink for it, and gathers the others.
ParameterGradients find_gradients(GradientRows& rows, const GradPlan& plan,
                                  const GradientSetting& setting, const TensorInfo& parameters,
                                  RowSink* dx, const RunOptions& options) {
  const Plan& layout = plan.rows;
  const bool uniform = parameters.shape.empty();
  const RequestedColumns columns{plan.requested.dweight, plan.requested.dbias, uniform,
                                 parameters.dtype};
  const bool shares = plan.shares_weights && !uniform;
  const bool wants_parameters = columns.dweight || columns.dbias;
  const bool wants_columns = wants_parameters && !shares;
  // gathered: null where weights are shared.
  const auto find_parameters = [&](ColumnGradients* gathered) {
    RowReplay again = rows.again(layout, options);
    if (options.ranks->count() > 1) {
      again.all_reduce = [&](const auto&... parts) { all_reduce(*options.ranks, parts...); };
      again.distributes_columns = layout.route.in_parts && gathered != nullptr;
    }
    return gathered != nullptr ? parameter_gradients(setting, *gathered, columns, again)
                               : shared_gradients(setting, layout.affine, columns, again);
  };
  ParameterGradients found;
  if (layout.row_length == 0 || layout.rows == 0) {
    // Sums over no elements.
    found.dweight.assign(static_cast<std::size_t>(element_count(parameters.shape)), 0);
    found.dbias = found.dweight;
  } else if (layout.route.in_parts) {
    // Threads write different columns, and so do ranks: one object will do.
    std::unique_ptr<ColumnGradients> gathered;
    const Block own = share_of(parts_of(layout), *options.ranks);
    if (wants_columns) gathered = std::make_unique<ColumnGradients>(own.count, own.first);
    long_gradients(rows, plan, setting, dx, gathered.get(), options);
    if (wants_parameters) found = find_parameters(gathered.get());
    // The columns of ranks follow each other.
    for (std::vector<double>* const numbers : {&found.dweight, &found.dbias}) {
      if (gathered && !uniform) gather(*options.ranks, *numbers);
    }
  } else {
    Pool<ColumnGradients> gathered;
    if (dx != nullptr || wants_columns) {
      gradients_of_blocks(rows, plan, setting, dx, wants_columns ? &gathered : nullptr, options);
    }
    const auto all = wants_columns ? merged(gathered, layout.row_length) : nullptr;
    if (wants_parameters) found = find_parameters(all.get());
  }
  return found;
}

// What one rank does.
void run_share(const GradSources& sources, const GradPlan& plan, const Backend& backend,
               const AffineTerm& weight, const TensorInfo& parameters, const GradSinks& sinks,
               const RunOptions& options) {
  const ForEachTile for_each = for_each_tile(options.threads);
  const Plan& layout = plan.rows;
  GradientRows rows(sources, plan, for_each);
  std::optional<RowSink> dx;
  if (sinks.dx != nullptr)
    dx.emplace(*sinks.dx, layout.result(), layout.out_view, layout.route.out, for_each);
  const GradientSetting setting{
      backend,           layout.in, sources.dy.info().dtype, layout.out,
      layout.row_length, weight,    layout.formula,          layout.route.in_parts};
  const ParameterGradients found =
      find_gradients(rows, plan, setting, parameters, dx ? &*dx : nullptr, options);
  rows.finish();
  if (dx) dx->finish();
  if (sinks.dweight != nullptr) write_numbers(found.dweight, parameters, *sinks.dweight, options);
  if (sinks.dbias != nullptr) write_numbers(found.dbias, parameters, *sinks.dbias, options);
}

}  // namespace

void run_grad(const GradSources& sources, const GradPlan& plan, const Backend& backend,
              const AffineTerm& weight, const TensorInfo& parameters, const GradSinks& sinks,
              const RunOptions& options) {
  check_same(*options.ranks, sources);
  Participants participants(
      *options.ranks, can_distribute(sources, plan) &&
                          (sinks.dx == nullptr || can_distribute(*sinks.dx, plan.rows.route.out)));
  Ranks* const ranks = participants.ranks();
  if (ranks == nullptr) return skip(sinks);
  run_share(sources, plan, backend, weight, parameters, sinks,
            {options.threads, options.progress, ranks});
}

}  // namespace lnorm
