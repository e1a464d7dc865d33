#include "lnorm/pipeline/grad.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/backward.hpp"
#include "lnorm/layout/row_sink.hpp"
#include "lnorm/pipeline/long_gradients.hpp"

namespace lnorm {

namespace {

// One for every thread that is at work, and not for every block under way: where rows are long they are large.
class ColumnsOfThreads {
 public:
  explicit ColumnsOfThreads(std::int64_t columns) : columns_(columns) {}

  ColumnGradients& take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty())
      free_.push_back(all_.emplace_back(std::make_unique<ColumnGradients>(columns_)).get());
    ColumnGradients* const columns = free_.back();
    free_.pop_back();
    return *columns;
  }

  void put_back(ColumnGradients& columns) {
    const std::lock_guard lock(mutex_);
    free_.push_back(&columns);
  }

  // What all of them have gathered.
  ColumnGradients& merged() {
    ColumnGradients& sum = take();
    for (const auto& other : all_) {
      if (other.get() != &sum) sum.merge(*other);
    }
    return sum;
  }

 private:
  std::int64_t columns_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ColumnGradients>> all_;
  std::vector<ColumnGradients*> free_;
};

// Rows in blocks of whole ones.
class GradientBlocks {
 public:
  GradientBlocks(GradientRows& rows, const GradPlan& plan, const RunOptions& options)
      : rows_(rows),
        plan_(plan.rows),
        progress_(options.progress),
        ranks_(*options.ranks),
        share_(block_range_of(blocks(), ranks_, true)),
        executor_(executor_for(plan.rows, options.threads)),
        slots_(executor_.slots()) {}

  // dx and columns may be null: they are not wanted.
  void run(const GradientSetting& setting, RowSink* dx, ColumnsOfThreads* columns) {
    const auto begin = [&](std::int64_t block, std::size_t s) {
      const Tile tile = tile_of(block);
      rows_.begin(tile, slots_[s].in);
      rows_.begin_saved(tile, slots_[s].in);
    };
    const auto work = [&](std::int64_t block, std::size_t s) {
      const Tile tile = tile_of(block);
      Slot& slot = slots_[s];
      read(tile, slot);
      if (dx != nullptr) slot.out.resize(tile.bytes(item_size(plan_.out)));
      ColumnGradients* const gathered = columns != nullptr ? &columns->take() : nullptr;
      layer_norm_backward(setting.kernel, rows_.x(tile, slot.in), rows_.dy(tile, slot.in),
                          {dx != nullptr ? slot.out.data() : nullptr, plan_.out}, setting.weight,
                          setting.formula, GradientRows::saved(slot.in, 0), gathered);
      if (gathered != nullptr) columns->put_back(*gathered);
      if (dx != nullptr) slot.encoded = dx->put(tile, slot.out, slot.packed, slot.text);
    };
    const auto end = [&](std::int64_t block, std::size_t s) {
      const Tile tile = tile_of(block);
      if (dx != nullptr) dx->write(slots_[s].encoded);
      ranks_.check();
      if (!progress_) return;
      // The others are about as far.
      const std::int64_t done = (tile.first_row + tile.rows) * ranks_.count();
      progress_(std::min(done, plan_.rows) * plan_.row_length);
    };
    executor_.run(share_.size(), begin, work, end);
  }

  // All rows once more, for as long as this object lives.
  RowReplay again() {
    const auto for_each_row = [this](const auto& see) {
      executor_.run(
          share_.size(), {},
          [&](std::int64_t block, std::size_t s) {
            const Tile tile = tile_of(block);
            Slot& slot = slots_[s];
            read(tile, slot);
            for (std::int64_t r = 0; r < tile.rows; ++r) {
              const GradientPart row = rows_.part(tile, slot.in, r);
              see(
                  s, [&](const auto& see_part) { see_part(row); }, GradientRows::saved(slot.in, r));
            }
          },
          [&](std::int64_t, std::size_t) { ranks_.check(); });
    };
    return {executor_.slots(), for_each_row};
  }

 private:
  // A block under way, in buffers that the next block will use again.
  struct Slot {
    GradientRows::Buffers in;
    std::vector<std::byte> out;
    std::vector<std::byte> packed;  // out as it lies in the file, where that is another order
    std::string text;               // if that is what out is encoded as
    std::span<const std::byte> encoded;
  };

  std::int64_t blocks() const {
    const std::int64_t rows = plan_.row_length > 0 ? plan_.rows : 0;
    return (rows + plan_.route.rows - 1) / plan_.route.rows;
  }

  // block: of this rank's.
  Tile tile_of(std::int64_t block) const {
    const std::int64_t first = (share_.begin + block) * plan_.route.rows;
    return {first, std::min(plan_.route.rows, plan_.rows - first), 0, plan_.row_length};
  }

  void read(const Tile& tile, Slot& slot) const {
    rows_.read(tile, slot.in);
    rows_.read_saved(tile, slot.in);
  }

  GradientRows& rows_;
  const Plan& plan_;
  const Progress& progress_;
  Ranks& ranks_;
  const BlockRange share_;
  Executor executor_;
  std::vector<Slot> slots_;
};

// In place of rows that rank 0 reads, and of what it writes.
void skip(const GradSinks& sinks) {
  for (TensorSink* const sink : {sinks.dx, sinks.dweight, sinks.dbias}) {
    if (sink != nullptr) sink->skip();
  }
}

// Of columns that follow each other, in rank 0.
void concatenate(ParameterGradients& found, Ranks& ranks) {
  for (std::vector<double>* const numbers : {&found.dweight, &found.dbias}) {
    reduce(
        ranks, [&] { return serialize(*numbers); },
        [&](const std::string& bytes) {
          std::vector<double> others;
          deserialize(bytes, others);
          numbers->insert(numbers->end(), others.begin(), others.end());
        });
  }
}

// Rank 0 has all numbers, and writes them.
void write(const std::vector<double>& numbers, const TensorInfo& info, TensorSink& sink,
           const RunOptions& options) {
  if (!options.ranks->is_first()) return sink.skip();
  const std::int64_t count = std::ssize(numbers);
  RowSink out(sink, info, RowView::contiguous(1, count), {}, for_each_tile(options.threads));
  if (count > 0) {
    std::vector<std::byte> elements(numbers.size() * item_size(info.dtype));
    store(numbers.data(), count, info.dtype, elements.data());
    std::vector<std::byte> packed;
    std::string text;
    out.write(out.put({0, 1, 0, count}, elements, packed, text));
  }
  out.finish();
}

}  // namespace

void run_grad(const GradSources& sources, const GradPlan& plan, const Kernel& kernel,
              const AffineTerm& weight, const TensorInfo& parameters, const GradSinks& sinks,
              const RunOptions& given) {
  Ranks& ranks = *given.ranks;
  check_same(ranks, sources);
  const bool distributes =
      all_of(ranks, can_distribute(sources, plan) &&
                        (sinks.dx == nullptr || can_distribute(*sinks.dx, plan.rows.route.out)));
  if (!distributes && !ranks.is_first()) return skip(sinks);
  RunOptions options = given;
  if (!distributes) options.ranks = &sole_rank();
  const ForEachTile for_each = for_each_tile(options.threads);
  const Plan& layout = plan.rows;
  const RequestedGradients& requested = plan.requested;
  GradientRows rows(sources, plan, for_each);
  std::optional<RowSink> dx;
  if (requested.dx)
    dx.emplace(*sinks.dx, layout.result(), layout.out_view, layout.route.out, for_each);
  RowSink* const dx_sink = dx ? &*dx : nullptr;
  const GradientSetting setting{
      kernel, layout.in,      rows.dy_dtype(),      layout.out, layout.row_length,
      weight, layout.formula, layout.route.in_parts};
  const bool uniform = parameters.shape.empty();
  const RequestedColumns columns{requested.dweight, requested.dbias, uniform, parameters.dtype};
  const bool wants_columns = requested.dweight || requested.dbias;
  ParameterGradients found;
  const auto find_parameters = [&](ColumnGradients& gathered, RowReplay again) {
    if (options.ranks->count() > 1) {
      again.all_reduce = [&](const auto&... parts) { all_reduce(*options.ranks, parts...); };
      again.distributes_columns = layout.route.in_parts;
    }
    found = parameter_gradients(setting, gathered, columns, again);
  };
  if (layout.row_length == 0) {
    // Sums over no elements.
    found.dweight.assign(uniform ? 1 : 0, 0);
    found.dbias = found.dweight;
  } else if (layout.route.in_parts) {
    // Threads write different columns, and so do ranks: one object will do.
    const auto gathered = wants_columns ? long_columns(plan, *options.ranks) : nullptr;
    long_gradients(rows, plan, setting, dx_sink, gathered.get(), options);
    if (gathered) {
      find_parameters(*gathered, long_row_replay(rows, plan, options));
      if (!uniform) concatenate(found, *options.ranks);
    }
  } else {
    ColumnsOfThreads gathered(layout.row_length);
    GradientBlocks blocks(rows, plan, options);
    blocks.run(setting, dx_sink, wants_columns ? &gathered : nullptr);
    if (wants_columns) find_parameters(gathered.merged(), blocks.again());
  }
  rows.finish();
  if (dx) dx->finish();
  if (requested.dweight) write(found.dweight, parameters, *sinks.dweight, options);
  if (requested.dbias) write(found.dbias, parameters, *sinks.dbias, options);
}

}  // namespace lnorm
