#include "lnorm/pipeline/plan.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// Input and output of a block together: what a core's second-level cache holds with room to spare.
constexpr std::int64_t kBlockBytes = std::int64_t{512} << 10;

// What is kept of every row of a block counts, too, where rows are short.
constexpr std::int64_t kMostBlockRows = 8192;

// Input and output of the longest row that is held as a whole.
constexpr std::int64_t kRowBytes = std::int64_t{2} << 20;

// Resolves the three ways to name the normalised axes to the first of the trailing ones.
struct FirstNormalizedAxis {
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

  std::size_t operator()(const FirstAxis& first) const { return resolve(first.axis); }

  std::size_t operator()(const NormalizedShape& normalized) const {
    const std::span<const std::int64_t> wanted = normalized.extents;
    const std::span<const std::int64_t> shape = x.shape;
    if (wanted.size() <= shape.size() &&
        std::equal(wanted.begin(), wanted.end(), shape.end() - std::ssize(wanted))) {
      return shape.size() - wanted.size();
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

  std::size_t operator()(const AxisList& list) const {
    std::vector<std::size_t> axes;
    for (const std::int64_t axis : list.axes) axes.push_back(resolve(axis));
    std::sort(axes.begin(), axes.end());
    if (axes.empty()) throw Error("the list of axes is empty, expected at least one");
    const auto twice = std::adjacent_find(axes.begin(), axes.end());
    if (twice != axes.end()) {
      throw Error(concat(described(), ", found axis ", *twice, " twice in the list of axes"));
    }
    if (axes.back() - axes.front() + 1 != axes.size() ||
        axes.back() + 1 != static_cast<std::size_t>(rank())) {
      throw Error(
          concat(described(), ", and normalising any but its last axes is not supported yet"),
          concat("transpose it so that the normalised axes come last, or use --axis ", axes.front(),
                 " for axis ", axes.front(), " and all after it"));
    }
    return axes.front();
  }
};

}  // namespace

Shape Plan::normalized_shape() const {
  return {shape.begin() + std::min(std::ssize(shape), static_cast<std::ptrdiff_t>(first_axis)),
          shape.end()};
}

Shape Plan::stats_shape(bool keepdim) const {
  const std::size_t leading = std::min(shape.size(), first_axis);
  Shape result(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(leading));
  if (keepdim) result.resize(shape.size(), 1);
  return result;
}

Plan make_plan(const TensorInfo& x, const LayerNormOptions& options, std::optional<DType> out) {
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
  plan.first_axis = std::visit(FirstNormalizedAxis{x}, options.axes);
  plan.rows = element_count(plan.stats_shape(false));
  plan.row_length = element_count(plan.normalized_shape());
  if (formula.ddof < 0) throw Error(concat("ddof is ", formula.ddof, ", expected 0 or more"));
  if (plan.row_length > 0 && formula.ddof >= plan.row_length) {
    throw Error(concat(printable(x.name), ": ddof is ", formula.ddof, ", but a row has only ",
                       counted(plan.row_length, "element"), "; expected ddof below that"));
  }
  const auto bytes_per_element =
      static_cast<std::int64_t>(item_size(plan.in) + item_size(plan.out));
  const std::int64_t elements = kBlockBytes / bytes_per_element;
  plan.block_rows = std::clamp<std::int64_t>(elements / std::max<std::int64_t>(1, plan.row_length),
                                             1, kMostBlockRows);
  plan.long_rows = plan.row_length > kRowBytes / bytes_per_element;
  return plan;
}

}  // namespace lnorm
