// Group, instance and batch norm, and weights along any axes: a plan's rows and weights through every kernel, against exact
// rows whose elements are found index by index.

#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "property/data.hpp"
#include "support/pace.hpp"

namespace {

using namespace property;
using lnorm::Axes;
using lnorm::DType;
using lnorm::MemoryOrder;
using lnorm::Shape;
using oracle::Number;

// A norm as people name it, by the axes that a row has in common, and those that weights run along.
struct Norm {
  lnorm::NormalizedAxes axes;
  std::vector<std::int64_t> affine_axes;
  std::int64_t groups = 0;
  std::size_t channel_axis = 1;
};

std::vector<Norm> norms_of(const Shape& shape) {
  std::vector<Norm> norms;
  const auto ndim = std::ssize(shape);
  for (std::int64_t channel_axis = 1; channel_axis < ndim; ++channel_axis) {
    const std::int64_t channels = shape[static_cast<std::size_t>(channel_axis)];
    for (std::int64_t groups = 1; groups <= channels; ++groups) {
      if (channels % groups != 0) continue;
      norms.push_back({lnorm::Groups{groups, channel_axis - (groups % 2 == 0 ? ndim : 0)},
                       {},
                       groups,
                       static_cast<std::size_t>(channel_axis)});
    }
  }
  // Each set of axes with each other one of weights.
  for (unsigned normalized = 1; normalized < 1U << ndim; ++normalized) {
    for (unsigned affine = 1; affine < 1U << ndim; ++affine) {
      const auto axes_of = [&](unsigned bits) {
        std::vector<std::int64_t> axes;
        for (std::int64_t axis = 0; axis < ndim; ++axis) {
          if ((bits >> axis & 1U) != 0) axes.push_back(axis);
        }
        return axes;
      };
      norms.push_back({lnorm::AxisList{axes_of(normalized)}, axes_of(affine)});
    }
  }
  return norms;
}

// Which row an element is of, and which weight it has, as indices.
struct Place {
  Shape row;
  Shape weight;
};

Place place_of(const Norm& norm, const Shape& shape, const Shape& index) {
  Place place;
  if (norm.groups > 0) {
    const std::int64_t channel = index[norm.channel_axis];
    place.row = {index[0], channel / (shape[norm.channel_axis] / norm.groups)};
    place.weight = {channel};
    return place;
  }
  const auto& axes = std::get<lnorm::AxisList>(norm.axes).axes;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const auto number = static_cast<std::int64_t>(axis);
    if (std::find(axes.begin(), axes.end(), number) == axes.end()) {
      place.row.push_back(index[axis]);
    }
    if (std::find(norm.affine_axes.begin(), norm.affine_axes.end(), number) !=
        norm.affine_axes.end()) {
      place.weight.push_back(index[axis]);
    }
  }
  return place;
}

std::int64_t position_of(const Shape& index, const Shape& shape, MemoryOrder order) {
  const auto strides = lnorm::strides(shape, order);
  std::int64_t position = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) position += index[axis] * strides[axis];
  return position;
}

struct Case {
  Shape shape;
  MemoryOrder order = MemoryOrder::c;
  DType out = DType::float32;
  lnorm::Formula formula = {};
  bool has_bias = true;
  bool plus_one = false;
};

// A row as the oracle takes it, with the places of its elements in y.
struct RowOfCase {
  std::vector<Number> x;
  std::vector<Number> weight;
  std::vector<Number> bias;
  std::vector<std::int64_t> places;
};

std::vector<double> expected_of(const Norm& norm, const Case& c, const Data& x, const Data& weight,
                                const Data& bias, const Shape& weight_shape) {
  std::map<Shape, RowOfCase> rows;
  for (std::int64_t i = 0; i < lnorm::element_count(c.shape); ++i) {
    const Shape index = lnorm::index_of(i, c.shape);
    const Place place = place_of(norm, c.shape, index);
    RowOfCase& row = rows[place.row];
    const auto w =
        static_cast<std::size_t>(position_of(place.weight, weight_shape, MemoryOrder::c));
    row.x.push_back(x.numbers[static_cast<std::size_t>(position_of(index, c.shape, c.order))]);
    row.weight.push_back(weight.numbers[w]);
    if (c.has_bias) row.bias.push_back(bias.numbers[w]);
    row.places.push_back(i);
  }
  std::vector<double> expected(x.numbers.size());
  for (const auto& [key, row] : rows) {
    const oracle::Row exact(row.x, row.weight, c.plus_one, row.bias, c.formula);
    for (std::size_t i = 0; i < row.x.size(); ++i) {
      expected[static_cast<std::size_t>(row.places[i])] =
          exact.is_finite() && exact.is_defined() ? exact.y(i, c.out) : kNan;
    }
  }
  return expected;
}

Shape weight_shape_of(const Norm& norm, const Shape& shape) {
  if (norm.groups > 0) return {shape[norm.channel_axis]};
  Shape result;
  for (const std::int64_t axis : norm.affine_axes) {
    result.push_back(shape[static_cast<std::size_t>(axis)]);
  }
  return result;
}

void check(const Norm& norm, const Case& c, DType in, Random& random) {
  const auto count = static_cast<int>(lnorm::element_count(c.shape));
  const Shape weight_shape = weight_shape_of(norm, c.shape);
  const auto numbers = static_cast<int>(lnorm::element_count(weight_shape));
  const Data x =
      lnorm::is_floating(in) ? floats(in, kNormal, count, random) : integers(in, count, 7, random);
  const Data weight = floats(DType::float32, kNormal, numbers, random);
  const Data bias = floats(DType::float32, kNormal, numbers, random);
  const auto expected = expected_of(norm, c, x, weight, bias, weight_shape);
  lnorm::LayerNormOptions options{.axes = norm.axes, .formula = c.formula};
  if (norm.groups == 0) options.affine_axes = lnorm::AxisList{norm.affine_axes};
  const lnorm::Plan plan =
      lnorm::make_plan({"x", in, c.shape, std::endian::native, c.order}, options, c.out);
  CHECK((plan.affine_shape() == weight_shape));
  lnorm::Affine affine(term(weight, c.plus_one).laid_out(plan.affine),
                       c.has_bias ? term(bias).laid_out(plan.affine) : lnorm::AffineTerm());
  affine.set_layout(plan.affine);
  const std::size_t item = lnorm::item_size(c.out);
  std::vector<std::byte> rows(x.bytes.size());
  plan.in_view.gather(plan.in_view.all(), lnorm::item_size(in), x.bytes.data(), rows.data(),
                      plan.row_length);
  for (const lnorm::Backend& backend : lnorm::backends()) {
    CAPTURE(backend.name);
    std::vector<std::byte> results(static_cast<std::size_t>(count) * item);
    // In two calls, as blocks come.
    const std::int64_t middle = plan.rows / 3;
    for (const auto& [first, end] : {std::pair{std::int64_t{0}, middle}, {middle, plan.rows}}) {
      const auto start = static_cast<std::size_t>(first * plan.row_length);
      const lnorm::RowsIn block{rows.data() + start * lnorm::item_size(in),
                                in,
                                std::endian::native,
                                end - first,
                                plan.row_length,
                                0,
                                first};
      backend.layer_norm(block, {results.data() + start * item, c.out}, affine, c.formula, {});
    }
    std::vector<std::byte> y(results.size());
    plan.out_view.scatter(plan.out_view.all(), item, results.data(), plan.row_length, y.data());
    std::vector<double> actual;
    for (int i = 0; i < count; ++i) {
      actual.push_back(read(y.data() + static_cast<std::size_t>(i) * item, c.out));
    }
    check_same(actual, expected);
  }
}

}  // namespace

TEST_CASE("every norm of small tensors is correctly rounded, whatever its weights run along",
          "[norms]") {
  const MemoryOrder order = GENERATE(MemoryOrder::c, MemoryOrder::fortran);
  Random random(36);
  for (const Shape& shape :
       {Shape{4, 6}, Shape{3, 6, 5}, Shape{2, 4, 3, 2}, Shape{2, 1, 3, 1}, Shape{2, 6, 1, 2, 2}}) {
    const auto norms = norms_of(shape);
    for (const Norm& norm : norms) {
      // All axes twice of five dimensions would be a thousand; groups are of tensors in C order.
      if (norm.groups == 0 && norms.size() > 100 && random() % (norms.size() / 40) != 0) continue;
      if (norm.groups > 0 && order == MemoryOrder::fortran) continue;
      const bool rms = random() % 3 == 0;
      const DType in = random() % 5 == 0 ? kIntegers[random() % kIntegers.size()]
                                         : kFloats[random() % kFloats.size()];
      const Case c{.shape = shape,
                   .order = order,
                   .out = kFloats[random() % kFloats.size()],
                   .formula = {.eps_on = any_place(random), .rms = rms},
                   .has_bias = random() % 2 == 0,
                   .plus_one = random() % 3 == 0};
      CAPTURE(lnorm::to_string(shape), norm.groups, norm.affine_axes, lnorm::name(in));
      check(norm, c, in, random);
    }
  }
}

TEST_CASE("runs of one weight are correctly rounded, be they longer than a chunk", "[norms]") {
  Random random(37);
  int number = 0;
  for (const DType dtype : kFloats) {
    for (const Shape& shape : {Shape{2, 6, 1025}, Shape{1, 4, 70}, Shape{3, 4, 64}}) {
      if (!support::takes(number++)) continue;
      for (const std::int64_t groups : {1, 2, 4}) {
        if (shape[1] % groups != 0) continue;
        CAPTURE(lnorm::to_string(shape), groups);
        check({lnorm::Groups{groups, 1}, {}, groups, 1}, {.shape = shape, .out = dtype}, dtype,
              random);
      }
      check({lnorm::AxisList{{2}}, {1}}, {.shape = shape, .out = dtype}, dtype, random);
      check({lnorm::AxisList{{0, 2}}, {1}}, {.shape = shape, .out = dtype}, dtype, random);
    }
  }
}

TEST_CASE("given statistics are used as they are, each result rounded once", "[norms]") {
  Random random(38);
  int number = 0;
  for (const DType in : kFloats) {
    for (const DType out : kFloats) {
      if (!support::takes(number++)) continue;
      const int n = 3000;
      const bool is_rstd = random() % 2 == 0;
      const bool on_std = random() % 2 == 0;
      const lnorm::Formula formula{.eps_on = on_std ? lnorm::EpsOn::std : lnorm::EpsOn::variance};
      const Data x = floats(in, kNormal, 2 * n, random);
      const Data weight = floats(DType::float32, kNormal, 2, random);
      const Data bias = floats(DType::float64, kNormal, 2, random);
      const std::vector<double> spreads{0.3, 2};
      lnorm::GivenStatistics given;
      given.mean = {0.1, -1.5};
      (is_rstd ? given.rstd : given.variance) = spreads;
      given.layout.rows = {{1, 2, 1}};
      lnorm::Affine affine(term(weight), term(bias));
      affine.set_layout({.shape = {2}, .order = {0}, .rows = {{1, 2, 1}}, .repeat = n});
      std::vector<double> expected;
      for (std::size_t i = 0; i < x.numbers.size(); ++i) {
        const std::size_t r = i / n;
        using oracle::fraction;
        const auto deviation = fraction(x.numbers[i]) - fraction({given.mean[r]});
        const auto spread = fraction({spreads[r]});
        const auto eps = fraction({formula.eps});
        const oracle::Root root(on_std ? spread : spread + eps);
        expected.push_back(oracle::decided([&](int which, std::int64_t bits) {
          auto s = root.exact() ? *root.exact() : root.bound(which, bits);
          if (on_std) s = s + eps;
          const auto xhat = is_rstd ? deviation * spread : deviation / s;
          return oracle::rounded(xhat * fraction(weight.numbers[r]) + fraction(bias.numbers[r]),
                                 out);
        }));
      }
      for (const lnorm::Backend& backend : lnorm::backends()) {
        CAPTURE(backend.name, lnorm::name(in), lnorm::name(out), is_rstd, on_std);
        std::vector<std::byte> y(x.numbers.size() * lnorm::item_size(out));
        lnorm::normalize_by(backend, given, rows_in(x, 2), {y.data(), out}, affine, formula);
        std::vector<double> actual;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          actual.push_back(read(y.data() + i * lnorm::item_size(out), out));
        }
        check_same(actual, expected);
      }
    }
  }
}
