#include "lnorm/pipeline/compared_rows.hpp"

#include <algorithm>

#include "lnorm/core/serialize.hpp"
#include "lnorm/layout/row_view.hpp"
#include "lnorm/pipeline/compare.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kLongestRow = std::int64_t{1} << 18;   // of which a block holds the whole
constexpr std::int64_t kMostColumns = std::int64_t{1} << 22;  // that are told apart

// By which positions along some axes are numbered; 0 along the others.
Shape strides_along(const Shape& shape, const Axes& axes) {
  Shape result(shape.size());
  const Shape own = extents(shape, axes);
  if (element_count(shape) == 0) return result;  // they might be too large, and none is needed
  const auto found = strides(own, MemoryOrder::c);
  for (std::size_t i = 0; i < axes.size(); ++i) result[axes[i]] = found[i];
  return result;
}

bool are_last(const Axes& axes, std::size_t dimensions) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != dimensions - axes.size() + i) return false;
  }
  return true;
}

}  // namespace

RowLayout::RowLayout(const Shape& shape, const Axes& axes)
    : shape_(shape),
      row_shape_(lnorm::row_shape(shape, axes)),
      axes_(axes),
      rows_(element_count(row_shape_)),
      row_length_(element_count(extents(shape, axes))),
      is_trailing_(are_last(axes, shape.size())),
      blocks_hold_rows_(is_trailing_ && row_length_ <= kLongestRow),
      block_elements_(blocks_hold_rows_ && row_length_ > 0
                          ? std::max<std::int64_t>(1, kComparedElements / row_length_) * row_length_
                          : kComparedElements),
      row_strides_(strides_along(shape, kept_axes(shape, axes))),
      column_strides_(strides_along(shape, axes)) {
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) break;
    run_length_ *= shape[axis];
  }
}

std::int64_t RowLayout::number_of(std::int64_t position, const Shape& strides) const {
  std::int64_t number = 0;
  for (std::size_t axis = shape_.size(); axis-- > 0; position /= shape_[axis]) {
    number += position % shape_[axis] * strides[axis];
  }
  return number;
}

void RowLayout::cut(std::int64_t position, std::int64_t count,
                    const std::function<RowScale(std::int64_t row)>& scale_of,
                    std::vector<RowRun>& runs) const {
  runs.clear();
  for (const std::int64_t end = position + count; position < end;) {
    std::int64_t row = row_of(position);
    const std::int64_t column = column_of(position);
    if (run_length_ > 1) {
      const std::int64_t length = std::min(end - position, run_length_ - position % run_length_);
      runs.push_back({length, row, column, scale_of(row)});
      position += length;
      continue;
    }
    // Each element along the last axis is in another row.
    const std::int64_t last = shape_.empty() ? 1 : shape_.back();
    const std::int64_t step = shape_.empty() ? 0 : row_strides_.back();
    for (std::int64_t left = std::min(end - position, last - position % last); left > 0; --left) {
      runs.push_back({1, row, column, scale_of(row)});
      row += step;
      ++position;
    }
  }
}

void FailedRows::add(const MismatchPlaces& places) {
  for (const RowErrors& row : places.rows) {
    if (row.mismatched > 0) rows_.add(row.row);
    const bool counts = row.mismatched > 0 || !layout_.blocks_hold_rows();
    if (!wants_errors_ || !counts) continue;
    const auto [place, is_new] = errors_.try_emplace(row.row, row);
    if (!is_new) place->second.append(row);
  }
  if (layout_.row_length() <= kMostColumns) columns_.append(places.columns);
}

std::string FailedRows::packed() {
  std::vector<RowErrors> errors;
  for (const auto& [row, own] : errors_) errors.push_back(own);
  return serialize(rows_, columns_, errors);
}

void FailedRows::append(const std::string& bytes) {
  NumberBits rows;
  MismatchPlaces places;
  deserialize(bytes, rows, places.columns, places.rows);
  rows_.append(rows);
  add(places);
}

void FailedRows::describe(bool asked, Comparison& result) const {
  const std::int64_t base = result.slice ? result.slice->first : 0;
  const Shape shape =
      result.slice ? row_shape(result.slice->shape, result.slice->axes) : layout_.row_shape();
  const NumberSet rows{rows_, layout_.rows(), base, shape};
  result.affected_rows = affected(rows);
  NumberSet columns{columns_, layout_.row_length(), 0};
  result.affected_columns = affected(columns);
  if (result.mismatched > 0) {
    result.where = columns.numbers.count() == 0 ? words_of(rows, "row")
                                                : words_of(result.mismatched, rows, columns);
  }
  for (const auto& [row, errors] : errors_) {
    if (errors.mismatched == 0) continue;
    result.failed_rows.push_back(errors);
    result.failed_rows.back().row += base;
  }
  if (!asked) return;
  MismatchedRows& found = result.rows.emplace();
  found.axes = result.row_max_axes;
  found.rows = layout_.rows();
  found.mismatched = rows.numbers.count();
  const std::int64_t first = rows.numbers.next(0);
  if (first >= 0) found.first = index_of(base + first, shape);
}

}  // namespace lnorm
