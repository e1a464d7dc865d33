#include "lnorm/pipeline/check_rows.hpp"

#include "lnorm/pipeline/executor.hpp"

namespace lnorm {

namespace {

Plan plan_of(const TensorInfo& info, const Axes& axes) {
  LayerNormOptions options;
  options.axes = AxisList{{axes.begin(), axes.end()}};
  return make_plan(info, options, DType::float64, {.whole = true, .ordered = true});
}

}  // namespace

CheckRows::CheckRows(TensorSource& source, const Axes& axes, int threads)
    : source_(source), plan_(plan_of(source.info(), axes)) {
  rows_.emplace(source_, plan_.in_view, plan_.route.in, for_each_tile(threads));
}

RowsIn CheckRows::read(std::int64_t first, std::int64_t count, TileBuffer& buffer) const {
  rows_->read({first, count, 0, plan_.row_length}, buffer);
  const TensorInfo& info = rows_->info();
  return {buffer.rows.data(), info.dtype, info.byte_order, count, plan_.row_length};
}

}  // namespace lnorm
