#include "chosen_rows.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/slice.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/layout/row_slice.hpp"
#include "lnorm/pipeline/grad_plan.hpp"
#include "parse_values.hpp"

namespace lnorm::app {

namespace {

// The axes of a tensor beside the whole one: a number for each row may lack the normalized ones.
Axes axes_beside(const RowSlice& slice, const TensorInfo& other) {
  return other.shape.size() == slice.shape.size() ? slice.axes : Axes{};
}

TensorInfo info_beside(const RowSlice& slice, const TensorInfo& other) {
  return slice_info(other, axes_beside(slice, other), slice.first, slice.count);
}

}  // namespace

RowChoice rows_in(const RowRange& range, const TensorInfo& x, const NormalizedAxes& axes) {
  RowChoice choice{resolve_axes(x, axes)};
  const std::int64_t rows = element_count(row_shape(x.shape, choice.axes));
  const auto from_start = [&](std::int64_t row) {
    return row < 0 ? std::max<std::int64_t>(0, row + rows) : row;
  };
  choice.first = std::min(rows, from_start(range.first.value_or(0)));
  const std::int64_t end = std::min(rows, from_start(range.end.value_or(rows)));
  choice.count = std::max<std::int64_t>(0, end - choice.first);
  return choice;
}

ChooseRows rows_in(const std::optional<RowRange>& range, const NormalizedAxes& axes) {
  if (!range) return {};
  return [range, &axes](const TensorInfo& x) { return rows_in(*range, x, axes); };
}

TensorInfo chosen(const ChooseRows& choose, const TensorInfo& x) {
  if (!choose) return x;
  const RowChoice rows = choose(x);
  return slice_info(x, rows.axes, rows.first, rows.count);
}

std::unique_ptr<TensorSource> chosen(const ChooseRows& choose, std::unique_ptr<TensorSource> x) {
  if (!choose) return x;
  const RowChoice rows = choose(x->info());
  return rows_of(std::move(x), rows.axes, rows.first, rows.count);
}

TensorInfo elements_beside(const TensorInfo& x, const TensorInfo& other) {
  if (!x.slice) return other;
  check_same_shape(other, whole_of(x));
  return info_beside(*x.slice, other);
}

TensorInfo row_numbers_beside(const TensorInfo& x, const TensorInfo& other) {
  if (!x.slice) return other;
  check_saved(other, whole_of(x), x.slice->axes);
  return info_beside(*x.slice, other);
}

std::unique_ptr<TensorSource> rows_beside(const TensorInfo& x,
                                          std::unique_ptr<TensorSource> other) {
  if (!x.slice) return other;
  const Axes axes = axes_beside(*x.slice, other->info());
  return rows_of(std::move(other), axes, x.slice->first, x.slice->count);
}

}  // namespace lnorm::app
