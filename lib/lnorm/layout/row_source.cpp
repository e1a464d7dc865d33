#include "lnorm/layout/row_source.hpp"

#include <utility>

#include "lnorm/layout/reorder.hpp"

namespace lnorm {

RowSource::RowSource(TensorSource& source, const RowView& view, const Passage& passage,
                     const ForEachTile& for_each_tile)
    : source_(&source), view_(view) {
  const auto take = [&](std::unique_ptr<TensorSource> reordered) {
    reordered_ = std::move(reordered);
    source_ = reordered_.get();
  };
  if (passage.transposes) take(transposed(*source_, for_each_tile));
  if (passage.lines_up_rows) {
    take(lined_up(*source_, view_, for_each_tile));
    view_ = view_.lined_up();
  }
  if (passage.needs_positions) {
    positioned_.emplace(*source_);
    source_ = &**positioned_;
  }
}

void RowSource::begin(const Tile& tile, std::vector<std::byte>& packed,
                      std::vector<std::byte>& rows) {
  if (source_->has_positions()) return;
  const auto elements = static_cast<std::size_t>(tile.rows * tile.count);
  source_->read(view_.is_contiguous() ? rows : packed, elements * item_size(info().dtype));
}

void RowSource::read(const Tile& tile, std::vector<std::byte>& packed,
                     std::vector<std::byte>& rows) const {
  if (source_->has_positions()) return read_tile(*source_, view_, tile, packed, rows);
  if (view_.is_contiguous()) return;
  rows.resize(packed.size());
  view_.gather(tile, item_size(info().dtype), packed.data(), rows.data(), tile.count);
}

}  // namespace lnorm
