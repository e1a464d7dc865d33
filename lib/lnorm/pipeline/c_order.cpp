#include "lnorm/pipeline/c_order.hpp"

#include <algorithm>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/row_view.hpp"
#include "lnorm/io/spooled_tensor.hpp"
#include "lnorm/pipeline/tile_io.hpp"

namespace lnorm {

namespace {

using Axis = RowView::Axis;

std::vector<Axis> axes_of(const Shape& shape, const std::vector<std::int64_t>& strides) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < shape.size(); ++i) axes.push_back({shape[i], strides[i]});
  return axes;
}

TensorInfo c_ordered(TensorInfo info) {
  info.order = MemoryOrder::c;
  return info;
}

bool is_ordered(const TensorInfo& info) {
  return info.order == MemoryOrder::c || element_count(info.shape) == 0;
}

class GatheredTensor final : public TensorSource {
 public:
  explicit GatheredTensor(std::unique_ptr<TensorSource> source)
      : TensorSource(c_ordered(source->info())),
        given_(std::move(source)),
        source_(*given_),
        view_(fortran_row(info().shape)) {}

  void read(std::vector<std::byte>& to, std::size_t bytes) override {
    to.resize(bytes);
    read_at(next_, to);
    skip(static_cast<std::int64_t>(bytes));
  }

  void skip(std::int64_t bytes) override { next_ += bytes; }

  bool has_positions() const noexcept override { return true; }

  void read_at(std::int64_t position, std::span<std::byte> to) const override {
    const auto item = static_cast<std::int64_t>(item_size(info().dtype));
    const Tile tile{0, 1, position / item, std::ssize(to) / item};
    std::vector<std::byte> raw;
    std::vector<std::byte> rows;
    read_tile(*source_, view_, tile, raw, rows);
    std::copy(rows.begin(), rows.end(), to.begin());
  }

  void finish() override { (*source_).finish(); }

 private:
  std::unique_ptr<TensorSource> given_;
  PositionedSource source_;
  RowView view_;
  std::int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<TensorSource> gathered(std::unique_ptr<TensorSource> source) {
  if (is_ordered(source->info())) return source;
  return std::make_unique<GatheredTensor>(std::move(source));
}

std::unique_ptr<TensorSource> in_c_order(std::unique_ptr<TensorSource> source,
                                         const RunOptions& options) {
  const TensorInfo& info = source->info();
  if (is_ordered(info)) return source;
  constexpr std::int64_t kLook = 32 * kChunk;
  constexpr std::int64_t kShortRun = 32;
  const std::int64_t elements = element_count(info.shape);
  if (elements > kLook) {
    const auto runs =
        std::ssize(fortran_row(info.shape).runs({0, 1, (elements - kLook) / 2, kLook}));
    if (kLook / runs < kShortRun) return transposed(*source, options);
  }
  return gathered(std::move(source));
}

std::unique_ptr<TensorSource> transposed(TensorSource& given, const RunOptions& options) {
  const PositionedSource source(given);
  const TensorInfo& info = given.info();
  // Rows along the last axis, numbered so that neighbours are neighbours in the file.
  const std::vector<Axis> in = axes_of(info.shape, fortran_strides(info.shape));
  const std::vector<Axis> out = axes_of(info.shape, c_strides(info.shape));
  const RowView in_view(std::vector<Axis>(in.rbegin() + 1, in.rend()), {&in.back(), 1});
  const RowView out_view(std::vector<Axis>(out.rbegin() + 1, out.rend()), {&out.back(), 1});
  const std::int64_t rows = element_count(info.shape) / info.shape.back();
  TensorSpool spool(c_ordered(info));
  copy_tiles(*source, in_view, spool, out_view, rows, options);
  (*source).finish();
  return spool.source();
}

}  // namespace lnorm
