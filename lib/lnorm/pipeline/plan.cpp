#include "lnorm/pipeline/plan.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/kernel/two_pass.hpp"

namespace lnorm {

namespace {

// Input and output of a block together: what a core's second-level cache holds with room to spare.
constexpr std::int64_t kBlockBytes = std::int64_t{512} << 10;

// The same where rows have to be gathered from the file, and scattered into it: the more, the longer
// are the runs in which that is done.
constexpr std::int64_t kTileBytes = std::int64_t{9} << 20;

// What is kept of every row of a block counts, too, where rows are short.
constexpr std::int64_t kMostBlockRows = 8192;
constexpr std::int64_t kMostTileRows = 32768;

// Input and output of the longest row that is held as a whole.
constexpr std::int64_t kRowBytes = std::int64_t{2} << 20;

// Of rows that have to be gathered, so many are to go through together, or they go through in parts.
constexpr std::int64_t kLeastTileRows = 64;

// Where neighbours in memory are fewer than this, a tensor in Fortran order is transposed first, unless
// it is a small one.
constexpr std::int64_t kLeastRun = 32;
constexpr std::int64_t kFewElements = std::int64_t{1} << 18;

// Resolves the three ways to name the normalised axes to their list, in ascending order.
struct NormalizedAxisList {
  const TensorInfo& x;

  // A zero-dimensional tensor is one row of one element; as in PyTorch, axis 0 or -1 names it.
  std::int64_t rank() const { return std::max<std::int64_t>(1, std::ssize(x.shape)); }

  std::string described() const {
    return concat(printable(x.name), ": ", to_string(x.shape), " has ",
                  counted(std::ssize(x.shape), "dimension"));
  }

  std::size_t resolve(std::int64_t axis) const {
    if (axis < -rank() || axis >= rank()) {
      throw Error(
          concat(described(), ", found axis ", axis, ", expected ", -rank(), " to ", rank() - 1));
    }
    return static_cast<std::size_t>(axis < 0 ? axis + rank() : axis);
  }

  // This axis and all after it.
  std::vector<std::size_t> from(std::size_t first) const {
    std::vector<std::size_t> axes;
    for (std::size_t axis = first; axis < x.shape.size(); ++axis) axes.push_back(axis);
    return axes;
  }

  std::vector<std::size_t> operator()(const FirstAxis& first) const {
    return from(resolve(first.axis));
  }

  std::vector<std::size_t> operator()(const NormalizedShape& normalized) const {
    const std::span<const std::int64_t> wanted = normalized.extents;
    const std::span<const std::int64_t> shape = x.shape;
    if (wanted.size() <= shape.size() &&
        std::equal(wanted.begin(), wanted.end(), shape.end() - std::ssize(wanted))) {
      return from(shape.size() - wanted.size());
    }
    std::string hint;
    const auto elsewhere = std::search(shape.begin(), shape.end(), wanted.begin(), wanted.end());
    if (elsewhere != shape.end()) {
      const auto axis = elsewhere - shape.begin();
      hint = wanted.size() == 1
                 ? concat(wanted[0], " is axis ", axis, "; did you mean --axis ", axis, "?")
                 : concat(to_string(wanted), " starts at axis ", axis, "; did you mean --axis ",
                          axis, "?");
    }
    throw Error(concat(printable(x.name), ": normalized shape ", to_string(wanted),
                       " does not match the last ", counted(std::ssize(wanted), "dimension"),
                       " of shape ", to_string(shape)),
                hint);
  }

  std::vector<std::size_t> operator()(const AxisList& list) const {
    std::vector<std::size_t> axes;
    for (const std::int64_t axis : list.axes) axes.push_back(resolve(axis));
    std::sort(axes.begin(), axes.end());
    if (axes.empty()) throw Error("the list of axes is empty, expected at least one");
    const auto twice = std::adjacent_find(axes.begin(), axes.end());
    if (twice != axes.end()) {
      throw Error(concat(described(), ", found axis ", *twice, " twice in the list of axes"));
    }
    return x.shape.empty() ? std::vector<std::size_t>{} : axes;
  }
};

std::vector<std::size_t> kept_axes(const Plan& plan) {
  std::vector<std::size_t> kept;
  for (std::size_t axis = 0; axis < plan.shape.size(); ++axis) {
    if (!std::binary_search(plan.axes.begin(), plan.axes.end(), axis)) kept.push_back(axis);
  }
  return kept;
}

std::vector<RowView::Axis> view_axes(const Shape& extents, const std::vector<std::int64_t>& strides,
                                     const std::vector<std::size_t>& axes) {
  std::vector<RowView::Axis> result;
  for (const std::size_t axis : axes) result.push_back({extents[axis], strides[axis]});
  return result;
}

// Numbers rows along the kept axes in the order given.
void set_views(const TensorInfo& x, const std::vector<std::size_t>& kept, Plan& plan) {
  if (plan.rows == 0 || plan.row_length == 0) return;  // nothing lies anywhere
  const auto in = x.order == MemoryOrder::c ? c_strides(x.shape) : fortran_strides(x.shape);
  const auto out = c_strides(x.shape);
  plan.in_view = {view_axes(x.shape, in, kept), view_axes(x.shape, in, plan.axes)};
  plan.out_view = {view_axes(x.shape, out, kept), view_axes(x.shape, out, plan.axes)};
  const Shape stats = plan.stats_shape(true);
  plan.stats_view = {view_axes(stats, c_strides(stats), kept), {}};
}

void choose_blocks(Plan& plan) {
  const auto bytes_per_element =
      static_cast<std::int64_t>(item_size(plan.in) + item_size(plan.out));
  const std::int64_t row_length = std::max<std::int64_t>(1, plan.row_length);
  const auto rows_in = [&](std::int64_t bytes, std::int64_t most) {
    return std::clamp<std::int64_t>(bytes / bytes_per_element / row_length, 1, most);
  };
  if (plan.in_view.is_plain() && plan.out_view.is_plain()) {
    plan.block_rows = rows_in(kBlockBytes, kMostBlockRows);
    plan.long_rows = plan.row_length > kRowBytes / bytes_per_element;
    return;
  }
  plan.block_rows = rows_in(kTileBytes, kMostTileRows);
  for (const RowView* view : {&plan.in_view, &plan.out_view}) {
    const std::int64_t slab = view->slab_rows();
    if (slab <= plan.block_rows) plan.block_rows -= plan.block_rows % slab;
  }
  const bool in_order = plan.reads_in_order() && plan.writes_in_order();
  plan.long_rows = plan.row_length > kTileBytes / bytes_per_element ||
                   (!in_order && plan.block_rows < std::min(plan.rows, kLeastTileRows));
  if (plan.long_rows || in_order || plan.row_length < 4 * kChunk) return;
  // Parts of more rows may have far more neighbours.
  Plan parts = plan;
  parts.long_rows = true;
  plan.long_rows = mean_run_length(parts) >= 4 * mean_run_length(plan);
}

}  // namespace

Shape Plan::normalized_shape() const {
  Shape result;
  for (const std::size_t axis : axes) result.push_back(shape[axis]);
  return result;
}

Shape Plan::stats_shape(bool keepdim) const {
  Shape result;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!std::binary_search(axes.begin(), axes.end(), axis)) {
      result.push_back(shape[axis]);
    } else if (keepdim) {
      result.push_back(1);
    }
  }
  return result;
}

bool Plan::reads_in_order() const noexcept {
  return block_rows % in_view.slab_rows() == 0 || block_rows >= rows;
}

bool Plan::writes_in_order() const noexcept {
  return block_rows % out_view.slab_rows() == 0 || block_rows >= rows;
}

Tile Plan::first_tile() const noexcept {
  if (!long_rows) return {0, std::min(block_rows, rows), 0, row_length};
  if (in_view.is_plain() && out_view.is_plain()) return {0, 1, 0, std::min(kSegment, row_length)};
  const auto bytes_per_element = static_cast<std::int64_t>(item_size(in) + item_size(out));
  const std::int64_t elements = kTileBytes / bytes_per_element;
  // A chunk of as many rows as there are; more of each where they are few.
  const std::int64_t tile_rows = std::min(rows, elements / kChunk);
  std::int64_t count = kSegment;
  while (count > kChunk && count * tile_rows > elements) count /= 2;
  return {0, tile_rows, 0, std::min(count, row_length)};
}

std::int64_t bytes_under_way(const Plan& plan) {
  const Tile tile = plan.first_tile();
  const auto in = static_cast<std::int64_t>(item_size(plan.in));
  const auto out = static_cast<std::int64_t>(item_size(plan.out));
  return tile.rows * tile.count * (in + out + std::max(in, out));
}

std::int64_t mean_run_length(const Plan& plan) {
  const Tile tile = plan.first_tile();
  const auto runs = std::max(plan.in_view.runs(tile).size(), plan.out_view.runs(tile).size());
  return tile.rows * tile.count / std::max<std::int64_t>(1, static_cast<std::int64_t>(runs));
}

Plan make_plan(const TensorInfo& x, const LayerNormOptions& options, std::optional<DType> out,
               RowOrder order) {
  Plan plan;
  plan.shape = x.shape;
  plan.formula = options.formula;
  plan.in = x.dtype;
  plan.out = out.value_or(is_floating(x.dtype) ? x.dtype : DType::float64);
  if (!is_floating(plan.out)) {
    throw Error(concat("output dtype ", name(plan.out),
                       ", expected float16, bfloat16, float32 or float64"));
  }
  const Formula& formula = options.formula;
  if (!std::isfinite(formula.eps) || formula.eps < 0) {
    throw Error(concat("eps is ", formula.eps, ", expected a finite number, 0 or more"));
  }
  plan.axes = std::visit(NormalizedAxisList{x}, options.axes);
  plan.rows = element_count(plan.stats_shape(false));
  plan.row_length = element_count(plan.normalized_shape());
  if (formula.ddof < 0) throw Error(concat("ddof is ", formula.ddof, ", expected 0 or more"));
  if (plan.row_length > 0 && formula.ddof >= plan.row_length) {
    throw Error(concat(printable(x.name), ": ddof is ", formula.ddof, ", but a row has only ",
                       counted(plan.row_length, "element"), "; expected ddof below that"));
  }
  const std::vector<std::size_t> kept = kept_axes(plan);
  set_views(x, kept, plan);
  choose_blocks(plan);
  if (x.order == MemoryOrder::c || plan.rows == 0 || plan.row_length == 0) return plan;
  // Some axes that go fastest in x go fastest here, too, and of the others that which does so in y.
  for (std::size_t first = 1; order == RowOrder::any && first <= kept.size(); ++first) {
    const auto middle = kept.begin() + static_cast<std::ptrdiff_t>(first);
    std::vector<std::size_t> row_axes(middle, kept.end());
    row_axes.insert(row_axes.end(), std::reverse_iterator(middle), kept.rend());
    Plan other = plan;
    set_views(x, row_axes, other);
    choose_blocks(other);
    if (mean_run_length(other) > mean_run_length(plan)) plan = other;
  }
  if (mean_run_length(plan) < kLeastRun && plan.rows * plan.row_length > kFewElements) {
    TensorInfo ordered = x;
    ordered.order = MemoryOrder::c;
    plan = make_plan(ordered, options, out, order);
    plan.transposes = true;
  }
  return plan;
}

}  // namespace lnorm
