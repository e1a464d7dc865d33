#include "lnorm/layout/reorder.hpp"

#include <algorithm>
#include <utility>

#include "lnorm/layout/spooled_tensor.hpp"

namespace lnorm {

namespace {

// A tensor in Fortran order as one row: its elements in C order.
RowView fortran_row(const Shape& shape) {
  return {shape, MemoryOrder::fortran, {}, kept_axes(shape, {})};
}

TensorInfo c_ordered(TensorInfo info) {
  info.order = MemoryOrder::c;
  return info;
}

bool is_ordered(const TensorInfo& info) {
  return info.order == MemoryOrder::c || element_count(info.shape) == 0;
}

class GatheredTensor final : public RandomAccessSource {
 public:
  // source: has positions.
  explicit GatheredTensor(std::unique_ptr<TensorSource> source)
      : RandomAccessSource(c_ordered(source->info())),
        source_(std::move(source)),
        view_(fortran_row(info().shape)) {}

  void read_at(std::int64_t position, std::span<std::byte> to) const override {
    const auto item = static_cast<std::int64_t>(item_size(info().dtype));
    const Tile tile{0, 1, position / item, std::ssize(to) / item};
    std::vector<std::byte> packed;
    std::vector<std::byte> rows;
    read_tile(*source_, view_, tile, packed, rows);
    std::copy(rows.begin(), rows.end(), to.begin());
  }

  void finish() override { source_->finish(); }

 private:
  std::unique_ptr<TensorSource> source_;
  RowView view_;
};

// All rows of a source in a temporary file, where they lie as another view says.
std::unique_ptr<TensorSource> copied(TensorSource& given, const RowView& from,
                                     const TensorInfo& info, const RowView& to,
                                     const ForEachTile& for_each_tile) {
  const auto positioned = given.has_positions() ? nullptr : spooled(given);
  TensorSource& source = positioned ? *positioned : given;
  TensorSpool spool(info);
  copy_tiles(source, from, spool, to, for_each_tile);
  source.finish();
  return spool.source();
}

}  // namespace

std::unique_ptr<TensorSource> gathered(std::unique_ptr<TensorSource> source) {
  if (is_ordered(source->info())) return source;
  if (!source->has_positions()) source = spooled(*source);
  return std::make_unique<GatheredTensor>(std::move(source));
}

std::unique_ptr<TensorSource> in_c_order(std::unique_ptr<TensorSource> source,
                                         const Passage& passage, const ForEachTile& for_each_tile) {
  return passage.transposes ? transposed(*source, for_each_tile) : gathered(std::move(source));
}

std::vector<std::byte> read_all_in_c_order(TensorSource& source) {
  std::vector<std::byte> elements = read_all(source);
  if (is_ordered(source.info())) return elements;
  std::vector<std::byte> ordered(elements.size());
  const RowView view = fortran_row(source.info().shape);
  view.gather(view.all(), item_size(source.info().dtype), elements.data(), ordered.data(),
              view.row_length());
  return ordered;
}

std::unique_ptr<TensorSource> transposed(TensorSource& source, const ForEachTile& for_each_tile) {
  const TensorInfo& info = source.info();
  // Rows along the last axis, numbered so that neighbors are neighbors in the file.
  Axes axes = kept_axes(info.shape, {});
  std::reverse(axes.begin(), axes.end());
  const Axes rows(axes.begin() + 1, axes.end());
  const Axes elements{axes.front()};
  const RowView from(info.shape, MemoryOrder::fortran, rows, elements);
  const RowView to(info.shape, MemoryOrder::c, rows, elements);
  return copied(source, from, c_ordered(info), to, for_each_tile);
}

std::unique_ptr<TensorSource> lined_up(TensorSource& source, const RowView& rows,
                                       const ForEachTile& for_each_tile) {
  TensorInfo info = c_ordered(source.info());
  info.shape = {rows.rows(), rows.row_length()};
  return copied(source, rows, info, rows.lined_up(), for_each_tile);
}

}  // namespace lnorm
