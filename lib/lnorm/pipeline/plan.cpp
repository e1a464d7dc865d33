#include "lnorm/pipeline/plan.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// Inputs and output of a block together: the L2 cache holds them with room to spare.
constexpr std::int64_t kBlockBytes = std::int64_t{512} << 10;

// The size of a tile where rows are gathered and scattered: more rows have longer runs.
constexpr std::int64_t kTileBytes = std::int64_t{9} << 20;

// A tile that is held while its rows are taken in blocks. Those of two threads are what memory should hold.
constexpr std::int64_t kHeldBytes = std::int64_t{32} << 20;

// Blocks of such a tile have whole cache lines of neighbors across rows.
constexpr std::int64_t kMinBlockRows = 16;

// Longer runs are read and written no faster.
constexpr std::int64_t kLongRunBytes = std::int64_t{256} << 10;

// Blocks with shorter runs are not written by themselves.
constexpr std::int64_t kShortRunBytes = std::int64_t{16} << 10;

// Tiles are smaller where threads would not have one each.
constexpr std::int64_t kMinTiles = 8;

// Rows may be so short that what is kept of each counts.
constexpr std::int64_t kMaxBlockRows = 8192;
constexpr std::int64_t kMaxTileRows = 32768;
constexpr std::int64_t kMaxHeldRows = 262144;

// Inputs and output of the longest row that is held as a whole.
constexpr std::int64_t kRowBytes = std::int64_t{2} << 20;

// Elements of a part of a row.
constexpr std::int64_t kPart = 65536;
constexpr std::int64_t kMinPart = 1024;

// Where fewer gathered rows than this can be held, they go in parts.
constexpr std::int64_t kMinTileRows = 64;

// A tensor in Fortran order whose runs are shorter is transposed first, unless it is a small one.
constexpr std::int64_t kMinRun = 32;
constexpr std::int64_t kFewElements = std::int64_t{1} << 18;

// Runs are counted in so many elements.
constexpr std::int64_t kLook = 32768;

constexpr std::string_view kAmong = "rows lie among each other";
constexpr std::string_view kScattered = "neighbors in a row lie far apart in the input";

std::int64_t mean_run_length(const RowView& view, const Tile& tile) {
  return tile.rows * tile.count / std::max<std::int64_t>(1, view.count_runs(tile));
}

std::int64_t mean_run_length(const Plan& plan, const Route& route) {
  const Tile tile = route.first_tile(plan.rows);
  return std::min(mean_run_length(plan.in_view, tile), mean_run_length(plan.out_view, tile));
}

std::int64_t bytes_per_element(const Plan& plan) {
  return static_cast<std::int64_t>(item_size(plan.in) + item_size(plan.out)) + plan.bytes_beside;
}

// Numbers rows along the kept axes in the order given.
void set_views(const TensorInfo& x, const Axes& kept, Plan& plan) {
  if (plan.rows == 0 || plan.row_length == 0) {  // nothing lies anywhere
    plan.in_view = plan.out_view = RowView::contiguous(plan.rows, plan.row_length);
    plan.scale_view = RowView::contiguous(plan.rows, plan.scales_of_row);
    return;
  }
  plan.in_view = {x.shape, x.order, kept, plan.axes};
  plan.out_view = {x.shape, MemoryOrder::c, kept, plan.axes};
  plan.row_number_view = {row_shape(plan.shape, plan.axes, true), MemoryOrder::c, kept, {}};
  if (plan.scales_of_row == 0 || plan.axes.empty()) {
    plan.scale_view = plan.row_number_view;
    return;
  }
  const std::size_t last = *std::max_element(plan.axes.begin(), plan.axes.end());
  Shape shape = row_shape(plan.shape, plan.axes, true);
  shape[last] = plan.scales_of_row;
  plan.scale_view = {shape, MemoryOrder::c, kept, {last}};
}

// Numbers that so few elements of a row share are held as often as that: there would be little to do for each.
constexpr std::int64_t kShortRepeat = 64;

// Where weight and bias lie along rows, which are numbered along the kept axes in the order given. all, axes: of x, or of
// the tensor that it is a slice of, with the normalized axes in the order of a row's elements.
AffineLayout affine_layout(const TensorInfo& x, const Shape& all, const Axes& axes,
                           const Axes& kept, const Axes& affine_axes) {
  AffineLayout layout;
  layout.shape = extents(all, affine_axes);
  layout.first_row = x.slice ? x.slice->first : 0;
  if (element_count(all) == 0) return layout;  // the products below might be too large
  const auto place_of = [&](std::size_t axis) {
    return std::find(affine_axes.begin(), affine_axes.end(), axis) - affine_axes.begin();
  };
  const auto is_affine = [&](std::size_t axis) {
    return static_cast<std::size_t>(place_of(axis)) < affine_axes.size();
  };
  // Where elements keep their order, each has a number of its own.
  const bool is_spread = !std::is_partitioned(axes.begin(), axes.end(), is_affine);
  std::int64_t numbers = 1;  // of a row
  for (const Axes* const from : {&kept, &axes}) {
    for (const std::size_t axis : *from) {
      const bool is_of_row = from == &axes;
      if (is_affine(axis)) {
        layout.order.push_back(static_cast<std::size_t>(place_of(axis)));
      } else if (is_of_row && is_spread) {
        layout.order.push_back(affine_axes.size() + layout.spread.size());
        layout.spread.push_back(all[axis]);
      }
      if (is_of_row) (is_affine(axis) || is_spread ? numbers : layout.repeat) *= all[axis];
    }
  }
  layout.repeat = std::max<std::int64_t>(1, layout.repeat);
  if (numbers > 1 && layout.repeat < kShortRepeat) layout.copies = std::exchange(layout.repeat, 1);
  std::int64_t step = 1;
  std::int64_t stride = numbers * layout.copies;
  for (std::size_t i = kept.size(); i-- > 0;) {
    const std::int64_t extent = all[kept[i]];
    if (is_affine(kept[i])) {
      if (extent > 1) layout.rows.push_back({step, extent, stride});
      stride *= extent;
    }
    step *= extent;
  }
  return layout;
}

// With statistics that are given elements do not depend on each other: rows need not be longer than some runs in the file.
void shorten_rows(const TensorInfo& x, std::int64_t item, Axes& axes) {
  std::sort(axes.begin(), axes.end());
  const auto is_short = [&] {
    const bool is_trailing =
        axes.back() - axes.front() + 1 == axes.size() && axes.back() + 1 == x.shape.size();
    return is_trailing && element_count(extents(x.shape, axes)) * item <= kBlockBytes;
  };
  while (axes.size() > 1 && !is_short()) axes.erase(axes.begin());
}

// Puts the normalized axes first along which weight and bias run, so that neighbors in a row share a number; unless they
// are all before the others.
void order_elements(Axes& axes, const Axes& affine_axes) {
  std::stable_partition(axes.begin(), axes.end(), [&](std::size_t axis) {
    return std::find(affine_axes.begin(), affine_axes.end(), axis) != affine_axes.end();
  });
}

// Those of x, or of the tensor that it is a slice of.
struct WholeAxes {
  Shape shape;
  Axes axes;    // normalized, in the order of a row's elements
  Axes kept;    // those of the options, whatever rows are
  Axes affine;  // ascending
};

// Also sets the plan's axes.
WholeAxes choose_axes(const TensorInfo& x, const LayerNormOptions& options, bool shortens,
                      bool keeps_order, Plan& plan) {
  plan.axes = resolve_axes(x, options.axes);
  WholeAxes whole;
  whole.shape = whole_of(x).shape;
  whole.axes = x.slice ? x.slice->axes : plan.axes;
  whole.kept = kept_axes(whole.shape, whole.axes);
  whole.affine = resolve_affine_axes(x, options);
  if (shortens && !x.slice) {
    shorten_rows(x, static_cast<std::int64_t>(item_size(x.dtype)), whole.axes);
  }
  if (!keeps_order) order_elements(whole.axes, whole.affine);
  if (!x.slice) {
    plan.axes = whole.axes;
    return whole;
  }
  const Axes& cut = x.slice->axes;
  std::transform(whole.axes.begin(), whole.axes.end(), plan.axes.begin(), [&](std::size_t axis) {
    return static_cast<std::size_t>(1 + (std::find(cut.begin(), cut.end(), axis) - cut.begin()));
  });
  return whole;
}

// Throws Error unless the normalized axes are among them.
Axes resolve_scale_axes(const TensorInfo& x, const AxisList& given, const Axes& normalized) {
  if (x.slice || x.split) {
    throw Error(concat(printable(x.name), ": axes of scales are those of a whole tensor, without ",
                       x.slice ? "a choice of rows" : "groups"));
  }
  Axes axes = resolve_axes(x, given);
  std::sort(axes.begin(), axes.end());
  for (const std::size_t axis : normalized) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    throw Error(concat(printable(x.name), ": the scale's axes leave out axis ", axis,
                       ", which is normalized"));
  }
  return axes;
}

bool is_contiguous(const Plan& plan) {
  return plan.in_view.is_contiguous() && plan.out_view.is_contiguous();
}

void count_bytes(const Plan& plan, Route& route) {
  const auto packed = static_cast<std::int64_t>(item_size(plan.in) + item_size(plan.out));
  route.bytes = std::min(route.rows, plan.rows) * route.count * (bytes_per_element(plan) + packed);
}

// Whether tiles of so many rows follow each other in both files.
bool is_slabs(const Plan& plan, std::int64_t rows) {
  return rows % plan.in_view.slab_rows() == 0 && rows % plan.out_view.slab_rows() == 0;
}

// Has tiles follow each other in the file, if they are large enough for that.
void take_slabs(const Plan& plan, Route& route) {
  for (const RowView* view : {&plan.in_view, &plan.out_view}) {
    const std::int64_t slab = view->slab_rows();
    if (slab <= route.rows) route.rows -= route.rows % slab;
  }
  const auto follow_each_other = [&](const RowView& view) {
    return route.rows % view.slab_rows() == 0 || route.rows >= plan.rows;
  };
  route.in.needs_random_access = !follow_each_other(plan.in_view);
  route.out.needs_random_access = !follow_each_other(plan.out_view);
  if (route.in.needs_random_access || route.out.needs_random_access) route.reason = kAmong;
}

Route in_blocks(const Plan& plan) {
  const bool contiguous = is_contiguous(plan);
  const std::int64_t elements = (contiguous ? kBlockBytes : kTileBytes) / bytes_per_element(plan);
  Route route;
  route.rows = std::clamp<std::int64_t>(elements / std::max<std::int64_t>(1, plan.row_length), 1,
                                        contiguous ? kMaxBlockRows : kMaxTileRows);
  route.count = plan.row_length;
  take_slabs(plan, route);
  route.block_rows = route.rows;
  count_bytes(plan, route);
  return route;
}

// Tiles of rows that lie among each other, with runs as long as memory allows. Their rows are taken in blocks.
Route in_held_tiles(const Plan& plan) {
  const auto in = static_cast<std::int64_t>(item_size(plan.in));
  const auto out = static_cast<std::int64_t>(item_size(plan.out));
  Route route;
  route.count = plan.row_length;
  route.block_rows =
      std::clamp(kBlockBytes / (plan.row_length * (in + out)), kMinBlockRows, kMaxBlockRows);
  const Tile block{0, std::min(route.block_rows, plan.rows), 0, plan.row_length};
  route.out.holds_tiles = mean_run_length(plan.out_view, block) * out < kShortRunBytes;
  const std::int64_t row_bytes = plan.row_length * (route.out.holds_tiles ? in + out : in);
  const std::int64_t most = std::clamp<std::int64_t>(kHeldBytes / row_bytes, 1, kMaxHeldRows);
  std::int64_t share = std::max(route.block_rows, plan.rows / kMinTiles);
  for (const RowView* view : {&plan.in_view, &plan.out_view}) {
    // A pipe passes by in slabs.
    if (view->slab_rows() <= kTileBytes / row_bytes) share = std::max(share, view->slab_rows());
  }
  route.rows = plan.in_view.whole_rows(std::min(most, share));
  // Half of it will do where it is slabs, and its runs are long.
  for (Route half = route; half.rows >= 2 * route.block_rows; route = half) {
    half.rows /= 2;
    if (half.rows * 2 < route.rows || !is_slabs(plan, half.rows)) break;
    if (mean_run_length(plan, half) * in < kLongRunBytes) break;
  }
  take_slabs(plan, route);
  route.block_rows = std::min(route.block_rows, route.rows);
  route.bytes = route.rows * row_bytes + route.block_rows * plan.row_length * (in + out);
  return route;
}

Route in_parts(const Plan& plan, std::string reason) {
  Route route;
  route.in_parts = true;
  route.count = kPart;
  if (!is_contiguous(plan)) {
    // The shortest parts of as many rows as there are; longer ones where rows are few.
    const std::int64_t elements = kTileBytes / bytes_per_element(plan);
    route.rows = std::min(plan.rows, elements / kMinPart);
    while (route.count > kMinPart && route.count * route.rows > elements) route.count /= 2;
  }
  route.count = std::min(route.count, plan.row_length);
  route.in.needs_random_access = true;
  route.out.needs_random_access = route.rows > 1 || !plan.out_view.is_contiguous();
  route.reason = std::move(reason);
  count_bytes(plan, route);
  return route;
}

std::string bytes_text(std::int64_t bytes) {
  const bool large = bytes >= std::int64_t{10} << 20;
  return concat(large ? bytes >> 20 : bytes >> 10, large ? " MiB" : " KiB");
}

Route choose_route(const Plan& plan, bool in_tiles) {
  if (plan.rows == 0) return in_blocks(plan);
  const bool holds_tiles = in_tiles && !is_contiguous(plan);
  const std::int64_t most = is_contiguous(plan) ? kRowBytes : holds_tiles ? kHeldBytes : kTileBytes;
  if (plan.row_length > most / bytes_per_element(plan)) {
    return in_parts(
        plan, concat("a row of ",
                     bytes_text(plan.row_length * static_cast<std::int64_t>(item_size(plan.in))),
                     " is more than should be held"));
  }
  Route blocks = holds_tiles ? in_held_tiles(plan) : in_blocks(plan);
  if (!blocks.in.needs_random_access && !blocks.out.needs_random_access) return blocks;
  if (blocks.rows < std::min(plan.rows, kMinTileRows)) {
    return in_parts(plan, concat(kAmong, ", and too few of them can be held"));
  }
  if (plan.row_length < 4 * kMinPart) return blocks;
  // Parts of more rows may have far more neighbors.
  const Route parts = in_parts(plan, concat(kAmong, ", and parts of them have longer runs"));
  return mean_run_length(plan, parts) >= 4 * mean_run_length(plan, blocks) ? parts : blocks;
}

// For rows that must be held, whatever they take.
Route in_whole_rows(const Plan& plan) {
  Route route = in_blocks(plan);
  route.bytes = plan.route.bytes;  // so that there are as many threads as for parts
  route.in.repacks_rows = !plan.in_view.is_contiguous();
  route.out.repacks_rows = !plan.out_view.is_contiguous();
  route.reason = is_contiguous(plan) ? "" : concat(kAmong, ", and too few of them can be held");
  return route;
}

}  // namespace

std::int64_t mean_run_length(const Plan& plan) { return mean_run_length(plan, plan.route); }

DType output_dtype(DType x, std::optional<DType> out) {
  return out.value_or(is_result(x) ? x : DType::float64);
}

Plan make_plan(const TensorInfo& given, const LayerNormOptions& options, std::optional<DType> out,
               const RowNeeds& needs) {
  const TensorInfo x = grouped(given, options.axes);
  Plan plan;
  plan.shape = x.shape;
  plan.result_shape = file_shape(x);
  plan.has_groups = x.split.has_value();
  plan.formula = options.formula;
  plan.in = x.dtype;
  plan.out = output_dtype(x.dtype, out);
  plan.rounding = plan.out;
  plan.bytes_beside = needs.bytes_beside;
  if (!needs.any_dtype && !is_result(plan.out)) {
    throw Error(concat("output dtype ", name(plan.out), ", expected ", dtype_list(is_result)));
  }
  const Formula& formula = options.formula;
  if (!std::isfinite(formula.eps) || formula.eps < 0) {
    throw Error(concat("eps is ", formula.eps, ", expected a finite number, 0 or more"));
  }
  plan.has_scale_groups = needs.scale_group.value_or(0) > 0;
  const WholeAxes whole =
      choose_axes(x, options, needs.given, plan.has_scale_groups || needs.keeps_order, plan);
  plan.rows = element_count(plan.row_shape(false));
  plan.row_length = element_count(plan.normalized_shape());
  if (formula.ddof < 0) throw Error(concat("ddof is ", formula.ddof, ", expected 0 or more"));
  if (!needs.over_rows && plan.row_length > 0 && formula.ddof >= plan.row_length) {
    throw Error(concat(printable(x.name), ": ddof is ", formula.ddof, ", but a row has only ",
                       counted(plan.row_length, "element"), "; expected ddof below that"));
  }
  const Axes kept = kept_axes(x.shape, plan.axes);
  if (needs.scale_axes) plan.scale_axes = resolve_scale_axes(x, *needs.scale_axes, plan.axes);
  const Axes of_scales = needs.one_scale ? Axes() : kept_axes(x.shape, plan.scale_axes);
  if (needs.one_scale || (needs.scale_axes && of_scales != kept)) {
    plan.shared_scales = element_count(extents(x.shape, of_scales));
  } else if (needs.scale_group) {
    plan.scales_of_row = 1;
  }
  if (plan.has_scale_groups) {
    const std::int64_t group = *needs.scale_group;
    if (plan.row_length % group != 0) {
      throw Error(concat(printable(x.name), ": a row has ", counted(plan.row_length, "element"),
                         ", which are no whole number of groups of ", group));
    }
    plan.scales_of_row = plan.row_length / group;
  }
  const auto number_rows = [&](const TensorInfo& tensor, const Axes& along) {
    Plan result = plan;
    set_views(tensor, along, result);
    const Axes& rows = x.slice ? whole.kept : along;
    result.affine = affine_layout(x, whole.shape, whole.axes, rows, whole.affine);
    result.statistics = affine_layout(x, whole.shape, whole.axes, rows, whole.kept);
    result.scales = affine_layout(x, whole.shape, whole.axes, rows, of_scales);
    result.route = choose_route(result, needs.in_tiles);
    return result;
  };
  plan = number_rows(x, kept);
  if (x.order == MemoryOrder::fortran && plan.rows > 0 && plan.row_length > 0) {
    // Try each split: leading kept axes vary fastest, as in x; the rest keep C order, as in y. Keep the
    // longest runs.
    for (std::size_t first = 1; !needs.ordered && first <= kept.size(); ++first) {
      const auto middle = kept.begin() + static_cast<std::ptrdiff_t>(first);
      Axes along(middle, kept.end());
      along.insert(along.end(), std::reverse_iterator(middle), kept.rend());
      Plan other = number_rows(x, along);
      if (mean_run_length(other) > mean_run_length(plan)) plan = std::move(other);
    }
    if (mean_run_length(plan) < kMinRun && plan.rows * plan.row_length > kFewElements) {
      TensorInfo ordered = x;
      ordered.order = MemoryOrder::c;
      plan = number_rows(ordered, kept);
      plan.route.in.transposes = true;
      plan.route.reason = kScattered;
    }
  }
  if (needs.whole && plan.route.in_parts) {
    const bool transposes = plan.route.in.transposes;
    plan.route = in_whole_rows(plan);
    plan.route.in.transposes = transposes;
  }
  return plan;
}

Shape Plan::scale_shape(bool keepdim) const {
  if (shared_scales > 0) {
    return scale_axes.empty() ? Shape{1} : lnorm::row_shape(shape, scale_axes, keepdim);
  }
  const bool keeps = keepdim && !has_groups;
  Shape result = row_shape(keepdim);
  if (!has_scale_groups) return result;
  if (keeps && !axes.empty()) {
    result[*std::max_element(axes.begin(), axes.end())] = scales_of_row;
  } else {
    result.push_back(scales_of_row);
  }
  return result;
}

void check_affine_shape(const TensorInfo& term, const Plan& plan) {
  const Shape expected = plan.affine_shape();
  if (term.shape.empty() || term.shape == expected) return;
  const bool is_normalized = !plan.has_groups && expected == plan.normalized_shape();
  // One number a group, as ONNX's GroupNormalization had it before version 21.
  const std::int64_t channels = plan.has_groups ? plan.normalized_shape().front() : 0;
  const bool is_of_groups = channels > 0 && term.shape.size() == 1 &&
                            term.shape.front() * channels == element_count(expected);
  throw Error(concat(printable(term.name), " has shape ", to_string(term.shape), ", but the ",
                     is_normalized     ? "normalized shape"
                     : plan.has_groups ? "shape of the channels"
                                       : "shape along the affine axes",
                     " is ", to_string(expected)),
              is_of_groups ? concat("repeat each number ", counted(channels, "time")) : "");
}

GivenStatistics given_statistics(const AffineTerm& mean, const AffineTerm& spread,
                                 const TensorInfo& spread_info, bool is_rstd, const Plan& plan) {
  const std::vector<double> numbers = spread.numbers();
  for (std::size_t i = 0; i < numbers.size() && !is_rstd; ++i) {
    if (!(numbers[i] < 0)) continue;
    const Shape& shape = spread_info.shape;
    const std::string place =
        shape.empty()
            ? ""
            : concat("element ", to_string(index_of(static_cast<std::int64_t>(i), shape)), ' ');
    throw Error(concat(printable(spread_info.name), ": ", place, "is ", numbers[i],
                       ", expected a variance, 0 or more"));
  }
  GivenStatistics given;
  given.mean = mean.laid_out(plan.statistics).numbers();
  given.layout = plan.statistics;
  (is_rstd ? given.rstd : given.variance) = spread.laid_out(plan.statistics).numbers();
  return given;
}

IoPath make_c_order_plan(const TensorInfo& x) {
  IoPath io_path;
  io_path.needs_random_access = x.order == MemoryOrder::fortran;
  const std::int64_t elements = element_count(x.shape);
  if (x.order == MemoryOrder::c || elements <= kLook) return io_path;
  const RowView row = RowView::one_row(x.shape, x.order);
  const auto runs = std::ssize(row.runs({0, 1, (elements - kLook) / 2, kLook}));
  io_path.transposes = kLook / runs < kMinRun;
  return io_path;
}

}  // namespace lnorm
