#include "lnorm/pipeline/row_ends.hpp"

#include "lnorm/pipeline/c_order.hpp"
#include "lnorm/pipeline/tile_io.hpp"

namespace lnorm {

namespace {

RowView plain_view(const Plan& plan) {
  const RowView::Axis rows{plan.rows, plan.row_length};
  const RowView::Axis elements{plan.row_length, 1};
  return {{&rows, 1}, {&elements, 1}};
}

// Whether whole rows that lie among each other are so long that few of them can be held: they are put
// one after another first.
bool holds_too_few(const Plan& plan, Access access) {
  return plan.long_rows && access == Access::blocks;
}

TensorInfo rows_info(const Plan& plan, const TensorInfo& info) {
  TensorInfo result = info;
  result.shape = {plan.rows, plan.row_length};
  result.order = MemoryOrder::c;
  return result;
}

}  // namespace

RowSource::RowSource(TensorSource& source, const Plan& plan, Access access,
                     const RunOptions& options)
    : source_(&source), view_(plan.in_view) {
  if (plan.transposes) {
    ordered_ = transposed(source, options);
    source_ = ordered_.get();
  }
  const bool few = holds_too_few(plan, access) && !view_.is_plain();
  if (!plan.reads_in_order() || access == Access::parts || few) {
    positioned_.emplace(*source_);
    source_ = &**positioned_;
  }
  if (few) {
    const TensorInfo info = rows_info(plan, source_->info());
    TensorSpool spool(info);
    copy_tiles(*source_, view_, spool, plain_view(plan), plan.rows, options);
    source_->finish();
    ordered_ = spool.source();
    source_ = ordered_.get();
    view_ = plain_view(plan);
  }
}

void RowSource::begin(const Tile& tile, std::vector<std::byte>& raw, std::vector<std::byte>& rows) {
  if (source_->has_positions()) return;
  const auto elements = static_cast<std::size_t>(tile.rows * tile.count);
  source_->read(view_.is_plain() ? rows : raw, elements * item_size(info().dtype));
}

void RowSource::read(const Tile& tile, std::vector<std::byte>& raw,
                     std::vector<std::byte>& rows) const {
  if (source_->has_positions()) return read_tile(*source_, view_, tile, raw, rows);
  if (view_.is_plain()) return;
  rows.resize(raw.size());
  view_.raw_to_rows(tile, item_size(info().dtype), raw.data(), rows.data(), tile.count);
}

RowSink::RowSink(TensorSink& sink, const Plan& plan, Access access, const RunOptions& options)
    : sink_(sink), plan_(plan), options_(options) {
  const TensorInfo info{"", plan.out, plan.shape};
  const bool few = holds_too_few(plan, access) && !plan.out_view.is_plain();
  const bool in_order = access == Access::parts
                            ? plan.first_tile().rows == 1 && plan.out_view.is_plain()
                            : plan.writes_in_order();
  if (!in_order || few) positioned_.emplace(sink, info);
  if (few) rows_.emplace(rows_info(plan, info));
}

std::span<const std::byte> RowSink::put(const Tile& tile, const std::vector<std::byte>& rows,
                                        std::vector<std::byte>& raw, std::string& text) const {
  const std::size_t item = item_size(plan_.out);
  if (rows_) {
    write_tile(*rows_, plain_view(plan_), tile, item, rows, raw);
    return {};
  }
  if (target().has_positions()) {
    write_tile(target(), plan_.out_view, tile, item, rows, raw);
    return {};
  }
  const std::int64_t position = tile.first_row * plan_.row_length + tile.first;
  if (plan_.out_view.is_plain()) return target().encode(position, rows, text);
  raw.resize(rows.size());
  plan_.out_view.rows_to_raw(tile, item, rows.data(), tile.count, raw.data());
  return target().encode(position, raw, text);
}

void RowSink::write(std::span<const std::byte> encoded) {
  if (!encoded.empty()) target().write(encoded);
}

void RowSink::finish() {
  if (rows_) {
    const std::unique_ptr<TensorSource> rows = rows_->source();
    copy_tiles(*rows, plain_view(plan_), target(), plan_.out_view, plan_.rows, options_);
  }
  if (positioned_) {
    positioned_->finish();
  } else {
    sink_.finish();
  }
}

}  // namespace lnorm
