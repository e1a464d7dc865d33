#include "lnorm/pipeline/check_rows.hpp"

#include "lnorm/kernel/row_errors.hpp"
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

std::vector<double> decoded(const Backend& backend, const RowsIn& row) {
  std::vector<double> numbers;
  const std::size_t count = decode(backend, row, numbers).size();
  numbers.resize(count);
  return numbers;
}

std::vector<double> numbers_of(const AffineTerm& term, std::int64_t count, double otherwise) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    numbers[static_cast<std::size_t>(i)] = term.number_or(otherwise, i).high;
  }
  return numbers;
}

}  // namespace lnorm
