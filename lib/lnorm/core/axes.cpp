#include "lnorm/core/axes.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <variant>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

std::string described(const TensorInfo& x) {
  return concat(printable(x.name), ": ", to_string(x.shape), " has ",
                counted(std::ssize(x.shape), "dimension"));
}

// The three ways to name the normalized axes.
struct NormalizedAxisList {
  const TensorInfo& x;

  // A zero-dimensional tensor is one row of one element; as in PyTorch, axis 0 or -1 names it.
  std::int64_t ndim() const { return std::max<std::int64_t>(1, std::ssize(x.shape)); }

  std::size_t resolve(std::int64_t axis) const {
    if (axis < -ndim() || axis >= ndim()) {
      throw Error(
          concat(described(x), ", found axis ", axis, ", expected ", -ndim(), " to ", ndim() - 1));
    }
    return static_cast<std::size_t>(axis < 0 ? axis + ndim() : axis);
  }

  // This axis and all after it.
  Axes from(std::size_t first) const {
    Axes axes;
    for (std::size_t axis = first; axis < x.shape.size(); ++axis) axes.push_back(axis);
    return axes;
  }

  Axes operator()(const FirstAxis& first) const { return from(resolve(first.axis)); }

  Axes operator()(const NormalizedShape& normalized) const {
    const std::span<const std::int64_t> wanted = normalized.extents;
    const std::span<const std::int64_t> shape = x.shape;
    if (wanted.size() <= shape.size() &&
        std::equal(wanted.begin(), wanted.end(), shape.end() - std::ssize(wanted))) {
      return from(shape.size() - wanted.size());
    }
    std::string hint;
    Remedy remedy;
    const auto elsewhere = std::search(shape.begin(), shape.end(), wanted.begin(), wanted.end());
    if (elsewhere != shape.end()) {
      const auto first = elsewhere - shape.begin();
      std::string axes;
      for (std::int64_t axis = first; axis < first + std::ssize(wanted); ++axis) {
        axes += concat(axes.empty() ? "" : ",", axis);
      }
      hint = concat(to_string(wanted), wanted.size() == 1 ? " is axis " : " are axes ", axes);
      remedy = {Remedy::Setting::axes, axes};
    }
    throw Error(concat(printable(x.name), ": normalized shape ", to_string(wanted),
                       " does not match the last ", counted(std::ssize(wanted), "dimension"),
                       " of shape ", to_string(shape)),
                hint, remedy);
  }

  // x is split.
  Axes operator()(const Groups&) const {
    const std::size_t channels = *x.split + 1;
    Axes axes{channels};
    for (std::size_t axis = 1; axis < x.shape.size(); ++axis) {
      if (axis != channels && axis + 1 != channels) axes.push_back(axis);
    }
    return axes;
  }

  Axes operator()(const AxisList& list) const {
    Axes axes;
    for (const std::int64_t axis : list.axes) axes.push_back(resolve(axis));
    std::sort(axes.begin(), axes.end());
    if (axes.empty() && !x.shape.empty())
      throw Error("the list of axes is empty, expected at least one");
    const auto twice = std::adjacent_find(axes.begin(), axes.end());
    if (twice != axes.end()) {
      throw Error(concat(described(x), ", found axis ", *twice, " twice in the list of axes"));
    }
    return x.shape.empty() ? Axes{} : axes;
  }
};

}  // namespace

Shape index_of_element(const Shape& shape, const Axes& normalized, std::int64_t row,
                       std::int64_t element) {
  Shape result(shape.size());
  const auto fill = [&](const Axes& axes, std::int64_t number) {
    const Shape own = index_of(number, extents(shape, axes));
    for (std::size_t i = 0; i < axes.size(); ++i) result[axes[i]] = own[i];
  };
  fill(kept_axes(shape, normalized), row);
  fill(normalized, element);
  return result;
}

std::int64_t column_of(const Shape& shape, const Axes& normalized, std::int64_t element) {
  if (std::is_sorted(normalized.begin(), normalized.end())) return element;
  Axes ordered = normalized;
  std::sort(ordered.begin(), ordered.end());
  const Shape index = index_of_element(shape, normalized, 0, element);
  return position_of(extents(index, ordered), extents(shape, ordered));
}

Axes resolve_axes(const TensorInfo& x, const NormalizedAxes& axes) {
  const NormalizedAxisList list{x};
  return x.slice ? list.from(1) : std::visit(list, axes);
}

Axes resolve_affine_axes(const TensorInfo& x, const LayerNormOptions& options) {
  const TensorInfo whole = whole_of(x);
  if (x.split) return {*x.split, *x.split + 1};
  if (options.affine_axes) return NormalizedAxisList{whole}(*options.affine_axes);
  Axes axes = x.slice ? x.slice->axes : resolve_axes(x, options.axes);
  std::sort(axes.begin(), axes.end());
  return axes;
}

TensorInfo grouped(const TensorInfo& x, const NormalizedAxes& axes) {
  const auto* const groups = std::get_if<Groups>(&axes);
  if (groups == nullptr || x.split) return x;
  const auto ndim = std::ssize(x.shape);
  if (ndim < 2) throw Error(concat(described(x), ", expected 2 or more, so that it has channels"));
  const std::int64_t axis = groups->channel_axis + (groups->channel_axis < 0 ? ndim : 0);
  if (axis < 1 || axis >= ndim) {
    throw Error(concat(described(x), ", found channel axis ", groups->channel_axis,
                       ", expected 1 to ", ndim - 1, " or ", 1 - ndim, " to -1"));
  }
  const std::int64_t channels = x.shape[static_cast<std::size_t>(axis)];
  if (groups->groups < 1 || channels % groups->groups != 0) {
    throw Error(concat(printable(x.name), ": ", counted(channels, "channel"),
                       " cannot be split into ", counted(groups->groups, "group"),
                       ", expected a divisor of ", channels));
  }
  TensorInfo seen = x;
  seen.split = static_cast<std::size_t>(axis);
  seen.order = MemoryOrder::c;
  seen.shape[*seen.split] = groups->groups;
  seen.shape.insert(seen.shape.begin() + axis + 1, channels / groups->groups);
  return seen;
}

TensorInfo grouped_as(const TensorInfo& other, const TensorInfo& x) {
  const TensorInfo whole = whole_of(x);
  TensorInfo as_file = whole;
  as_file.shape = file_shape(whole);
  check_same_shape(other, as_file);
  TensorInfo seen = other;
  seen.shape = whole.shape;
  seen.split = x.split;
  if (x.split) seen.order = MemoryOrder::c;
  return seen;
}

Shape file_shape(const TensorInfo& x) {
  Shape shape = x.shape;
  if (x.split && !x.slice) {
    const auto groups = shape.begin() + static_cast<std::ptrdiff_t>(*x.split);
    groups[1] *= groups[0];
    shape.erase(groups);
  }
  return shape;
}

Axes file_axes(const TensorInfo& x, const Axes& axes) {
  Axes result = axes;
  for (std::size_t& axis : result) {
    if (x.split && axis > *x.split) --axis;
  }
  return result;
}

Axes kept_axes(const Shape& shape, const Axes& normalized) {
  Axes kept;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (std::ranges::count(normalized, axis) == 0) kept.push_back(axis);
  }
  return kept;
}

Shape extents(const Shape& shape, const Axes& axes) {
  Shape result;
  for (const std::size_t axis : axes) result.push_back(shape[axis]);
  return result;
}

Shape row_shape(const Shape& shape, const Axes& normalized, bool keepdim) {
  if (!keepdim) return extents(shape, kept_axes(shape, normalized));
  Shape result = shape;
  for (const std::size_t axis : normalized) result[axis] = 1;
  return result;
}

std::string row_name(std::int64_t number, const Shape& rows) {
  if (rows.size() < 2) return std::to_string(number);
  return concat(number, ' ', to_string(index_of(number, rows)));
}

Shape index_in_file(const TensorInfo& x, const Axes& normalized, std::int64_t row,
                    std::int64_t element) {
  Shape index = index_of_element(x.shape, normalized, row, element);
  if (!x.split) return index;
  const auto group = index.begin() + static_cast<std::ptrdiff_t>(*x.split);
  group[1] += group[0] * x.shape[*x.split + 1];
  index.erase(group);
  return index;
}

void check_same_shape(const TensorInfo& tensor, const TensorInfo& x) {
  if (tensor.shape == x.shape) return;
  throw Error(concat(printable(tensor.name), " has shape ", to_string(tensor.shape), ", but ",
                     printable(x.name), " has shape ", to_string(x.shape)));
}

TensorInfo slice_info(const TensorInfo& x, const Axes& axes, std::int64_t first,
                      std::int64_t count) {
  TensorInfo slice = x;
  slice.shape = extents(x.shape, axes);
  slice.shape.insert(slice.shape.begin(), count);
  slice.order = MemoryOrder::c;
  if (x.slice) {
    slice.slice->first += first;
    slice.slice->count = count;
  } else {
    slice.slice = {x.shape, axes, first, count};
  }
  return slice;
}

TensorInfo whole_of(const TensorInfo& x) {
  TensorInfo whole = x;
  if (x.slice) {
    whole.shape = x.slice->shape;
    whole.slice.reset();
  }
  return whole;
}

std::int64_t all_rows(const RowSlice& slice) {
  return element_count(row_shape(slice.shape, slice.axes));
}

std::int64_t position_in_whole(const RowSlice& slice, std::int64_t position) {
  const std::int64_t length = element_count(extents(slice.shape, slice.axes));
  const Shape index =
      index_of_element(slice.shape, slice.axes, slice.first + position / length, position % length);
  std::int64_t result = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    result = result * slice.shape[axis] + index[axis];
  }
  return result;
}

}  // namespace lnorm
