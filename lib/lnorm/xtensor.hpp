#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>
#if __has_include(<xtensor/containers/xarray.hpp>)  // 0.26 on
#include <xtensor/containers/xarray.hpp>
#include <xtensor/containers/xcontainer.hpp>
#include <xtensor/containers/xscalar.hpp>
#include <xtensor/generators/xbuilder.hpp>
#else
#include <xtensor/xarray.hpp>
#include <xtensor/xbuilder.hpp>
#include <xtensor/xcontainer.hpp>
#include <xtensor/xscalar.hpp>
#endif

#include "lnorm/core/error.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/backward.hpp"
#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/parameter_gradients.hpp"
#include "lnorm/layout/row_view.hpp"
#include "lnorm/pipeline/grad_plan.hpp"
#include "lnorm/pipeline/plan.hpp"

// Layer normalization of tensors in memory, on xtensor expressions and containers:
//
//   xt::xarray<float> x = xt::random::randn<float>({2, 3, 768});
//   auto [y, mean, rstd] = lnorm::layer_norm(x);                       // over the last axis
//
//   lnorm::LayerNormOptions options;
//   options.axes = lnorm::NormalizedShape{{3, 768}};                   // over the last two
//   options.formula.eps = 1e-6;
//   auto z = lnorm::layer_norm(x, weight, bias, options).y;
//
//   options.axes = lnorm::Groups{32};                                  // group norm, 32 groups of axis 1
//
//   options.axes = lnorm::AxisList{{0, 2, 3}};                         // batch norm in evaluation
//   options.affine_axes = lnorm::AxisList{{1}};
//   auto u = lnorm::layer_norm_by(x, {running_mean, running_var}, weight, bias, options);
//
//   auto [dx, dweight, dbias] = lnorm::layer_norm_backward(dy, x, weight, options);
namespace lnorm {

// y has the shape of x and its value type, or double where that is an integer or bool. mean and
// rstd are float64, whatever x is, and have x's shape with 1 in the place of the normalized axes; of Groups,
// the first axis and the groups.
template <class T>
struct LayerNormResult {
  xt::xarray<T> y;
  xt::xarray<double> mean;
  xt::xarray<double> rstd;
};

// Statistics of rows that are known, as the running ones of batch norm in evaluation: a number each for every row, in the shape
// of LayerNormResult's, or with the normalized axes left out; or one for all rows. By RMS mean is not read.
struct KnownStatistics {
  xt::xarray<double> mean;
  xt::xarray<double> spread;  // the variance, 0 or more; or rstd
  bool is_rstd = false;
};

// dx has the shape of x and its value type, or double where that is an integer or bool. dweight and dbias have the
// shape of the weight and its value type where that is float or double, else dx's; without a weight, the shape of
// the normalized axes, or of those that weights run along.
template <class T, class P>
struct LayerNormGradients {
  xt::xarray<T> dx;
  xt::xarray<P> dweight;
  xt::xarray<P> dbias;
};

namespace detail {

template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, long double>,
                "layer_norm takes tensors of bool, integers, float or double");
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  constexpr bool is_signed = std::is_signed_v<T>;
  if constexpr (sizeof(T) == 1) return is_signed ? DType::int8 : DType::uint8;
  if constexpr (sizeof(T) == 2) return is_signed ? DType::int16 : DType::uint16;
  if constexpr (sizeof(T) == 4) return is_signed ? DType::int32 : DType::uint32;
  return is_signed ? DType::int64 : DType::uint64;
}

// T where it is float or double, else the other one.
template <class T, class Other>
using FloatOr = std::conditional_t<std::is_floating_point_v<T>, T, Other>;

// Calls use(info, data) with the expression's elements in C order. They are copied unless they lie in that
// order in memory.
template <class E, class Use>
decltype(auto) with_elements(const xt::xexpression<E>& expression, const char* name, Use use) {
  using T = typename E::value_type;
  const E& values = expression.derived_cast();
  const TensorInfo info{name, dtype_of<T>(), Shape(values.shape().begin(), values.shape().end())};
  const auto as_bytes = [](const T* data) { return reinterpret_cast<const std::byte*>(data); };
  if constexpr (std::is_base_of_v<xt::xcontainer<E>, E> &&
                E::static_layout == xt::layout_type::row_major) {
    return use(info, as_bytes(values.data()));
  } else {
    const xt::xarray<T, xt::layout_type::row_major> copy(values);
    return use(info, as_bytes(copy.data()));
  }
}

template <class E>
AffineTerm affine_term(const char* role, const xt::xexpression<E>& term, const Plan& plan,
                       bool plus_one) {
  return with_elements(term, role, [&](const TensorInfo& info, const std::byte* data) {
    check_affine_shape(info, plan);
    const auto bytes = static_cast<std::size_t>(element_count(info.shape)) * item_size(info.dtype);
    return AffineTerm(info, std::vector<std::byte>(data, data + bytes), plus_one)
        .laid_out(plan.affine);
  });
}

template <class W, class B>
Affine affine_of(const Plan& plan, const xt::xexpression<W>& weight, const xt::xexpression<B>& bias,
                 const LayerNormOptions& options) {
  return {affine_term("weight", weight, plan, options.zero_centered_weight),
          affine_term("bias", bias, plan, false), options.rounding};
}

template <class MakeAffine>
Affine laid_out(const Plan& plan, MakeAffine make_affine) {
  Affine affine = make_affine(plan);
  if (!affine.weight().is_uniform() || !affine.bias().is_uniform() || !affine.steps().empty()) {
    affine.set_layout(plan.affine);
  }
  return affine;
}

// The plan's rows of a tensor, where they lie or in room.
inline RowsIn rows_of(const Plan& plan, const TensorInfo& info, const std::byte* data,
                      std::vector<std::byte>& room) {
  if (!plan.in_view.is_contiguous()) {
    const Tile all = plan.in_view.all();
    room.resize(all.bytes(item_size(info.dtype)));
    plan.in_view.gather(all, item_size(info.dtype), data, room.data(), plan.row_length);
    data = room.data();
  }
  return {data, info.dtype, info.byte_order, plan.rows, plan.row_length};
}

// Calls make(rows) with where the plan's results are to be put as rows, and brings them to y.
template <class T, class Make>
void make_results(const Plan& plan, xt::xarray<T>& y, Make make) {
  const auto data = reinterpret_cast<std::byte*>(y.data());
  if (plan.out_view.is_contiguous()) return make(RowsOut{data, plan.out});
  const Tile all = plan.out_view.all();
  std::vector<std::byte> rows(all.bytes(item_size(plan.out)));
  make(RowsOut{rows.data(), plan.out});
  plan.out_view.scatter(all, item_size(plan.out), rows.data(), plan.row_length, data);
}

template <class E, class MakeAffine>
auto layer_norm(const xt::xexpression<E>& x, const LayerNormOptions& options,
                MakeAffine make_affine) {
  using Out = FloatOr<typename E::value_type, double>;
  return with_elements(x, "x", [&](const TensorInfo& info, const std::byte* data) {
    const Plan plan = make_plan(info, options);
    const Affine affine = laid_out(plan, make_affine);
    LayerNormResult<Out> result;
    result.y.resize(plan.result_shape);
    result.mean.resize(plan.row_shape(true));
    result.rstd.resize(plan.row_shape(true));
    const RowNumbersOut statistics{result.mean.data(), result.rstd.data()};
    if (plan.row_length == 0) {
      result.mean.fill(kNan);
      result.rstd.fill(kNan);
      return result;
    }
    std::vector<std::byte> room;
    const RowsIn rows = rows_of(plan, info, data, room);
    make_results(plan, result.y, [&](const RowsOut& y) {
      backends().front().layer_norm(rows, y, affine, plan.formula, statistics);
    });
    return result;
  });
}

template <class E, class MakeAffine>
auto layer_norm_by(const xt::xexpression<E>& x, const KnownStatistics& known,
                   const LayerNormOptions& options, MakeAffine make_affine) {
  using Out = FloatOr<typename E::value_type, double>;
  return with_elements(x, "x", [&](const TensorInfo& info, const std::byte* data) {
    const Plan plan = make_plan(info, options);
    const Affine affine = laid_out(plan, make_affine);
    const auto term = [&](const char* name, const xt::xarray<double>& numbers, TensorInfo& of) {
      return with_elements(
          numbers, name, [&](const TensorInfo& numbers_info, const std::byte* from) {
            of = numbers_info;
            const TensorInfo rows = grouped(info, options.axes);
            if (!of.shape.empty()) check_saved(of, rows, resolve_axes(rows, options.axes));
            const auto bytes = static_cast<std::size_t>(element_count(of.shape)) * sizeof(double);
            return AffineTerm(of, std::vector<std::byte>(from, from + bytes), false);
          });
    };
    if (known.spread.dimension() == 0 && known.spread() == 0) {
      throw Error("spread is 0, as it is by default, expected the variance, or rstd with is_rstd");
    }
    TensorInfo spread_info;
    TensorInfo mean_info;
    const AffineTerm mean =
        options.formula.has_mean() ? term("mean", known.mean, mean_info) : AffineTerm();
    const AffineTerm spread = term(known.is_rstd ? "rstd" : "variance", known.spread, spread_info);
    const GivenStatistics given = given_statistics(mean, spread, spread_info, known.is_rstd, plan);
    xt::xarray<Out> result;
    result.resize(plan.result_shape);
    std::vector<std::byte> room;
    const RowsIn rows = rows_of(plan, info, data, room);
    make_results(plan, result, [&](const RowsOut& y) {
      normalize_by(backends().front(), given, rows, y, affine, plan.formula);
    });
    return result;
  });
}

// P: of dweight and dbias. make_weight(plan) gives the weight, and what shape they have.
template <class P, class G, class E, class MakeWeight>
auto layer_norm_backward(const xt::xexpression<G>& dy, const xt::xexpression<E>& x,
                         const LayerNormOptions& options, MakeWeight make_weight) {
  using T = FloatOr<typename E::value_type, double>;
  const auto find = [&](const TensorInfo& x_info, const std::byte* x_data,
                        const TensorInfo& dy_info, const std::byte* dy_data) {
    const GradPlan grad_plan = make_grad_plan({x_info, dy_info}, options);
    const Plan& plan = grad_plan.rows;
    const auto [weight, weight_shape] = make_weight(plan);
    LayerNormGradients<T, P> result;
    result.dx.resize(plan.result_shape);
    result.dweight = xt::zeros<P>(weight_shape);
    result.dbias = xt::zeros<P>(weight_shape);
    if (plan.rows == 0 || plan.row_length == 0) return result;
    std::vector<std::byte> x_room;
    std::vector<std::byte> dy_room;
    const RowsIn x_rows = rows_of(plan, x_info, x_data, x_room);
    const RowsIn dy_rows = rows_of(plan, dy_info, dy_data, dy_room);
    const Backend& backend = backends().front();
    const bool shares = grad_plan.shares_weights && !weight_shape.empty();
    ColumnGradients gathered(shares ? 0 : plan.row_length);
    make_results(plan, result.dx, [&, &weight = weight](const RowsOut& dx) {
      if (shares) {
        lnorm::layer_norm_backward(backend, x_rows, dy_rows, dx, weight, plan.affine, plan.formula,
                                   nullptr);
      } else {
        lnorm::layer_norm_backward(backend, x_rows, dy_rows, dx, weight, plan.formula, nullptr,
                                   &gathered);
      }
    });
    const RowReplay again{1, [&](const auto& see) { replay(0, x_rows, dy_rows, nullptr, see); }};
    const RequestedColumns requested{true, true, weight_shape.empty(), dtype_of<P>()};
    const GradientSetting setting{backend,         plan.in, dy_info.dtype, plan.out,
                                  plan.row_length, weight,  plan.formula};
    const ParameterGradients found = shares
                                         ? shared_gradients(setting, plan.affine, requested, again)
                                         : parameter_gradients(setting, gathered, requested, again);
    std::copy(found.dweight.begin(), found.dweight.end(), result.dweight.begin());
    std::copy(found.dbias.begin(), found.dbias.end(), result.dbias.begin());
    return result;
  };
  return with_elements(x, "x", [&](const TensorInfo& x_info, const std::byte* x_data) {
    return with_elements(dy, "dy", [&](const TensorInfo& dy_info, const std::byte* dy_data) {
      return find(x_info, x_data, dy_info, dy_data);
    });
  });
}

}  // namespace detail

// y = (x - mean) * rstd of every row, as kernel/layer_norm.hpp defines it, with its accuracy.
// options names the normalized axes and the formula. x is not changed; nothing is
// shared with the result. Throws Error if the options do not fit x's shape.
template <class E>
auto layer_norm(const xt::xexpression<E>& x, const LayerNormOptions& options = {}) {
  return detail::layer_norm(x, options, [](const Plan&) { return Affine{}; });
}

// y = (x - mean) * rstd * weight + bias. weight and bias have any arithmetic type, and the shape of the
// normalized axes in x's order, or of options.affine_axes, or of the channels of groups. One without dimensions, xt::xscalar<double>(1), stands for every element.
// options.rounding says where else than at the end results are rounded to y's value type. Throws Error if their shapes
// are others.
template <class E, class W, class B>
auto layer_norm(const xt::xexpression<E>& x, const xt::xexpression<W>& weight,
                const xt::xexpression<B>& bias, const LayerNormOptions& options = {}) {
  return detail::layer_norm(
      x, options, [&](const Plan& plan) { return detail::affine_of(plan, weight, bias, options); });
}

// y by statistics that are known, as kernel/layer_norm.hpp defines it, with its accuracy: nothing of x is summed.
template <class E>
auto layer_norm_by(const xt::xexpression<E>& x, const KnownStatistics& known,
                   const LayerNormOptions& options = {}) {
  return detail::layer_norm_by(x, known, options, [](const Plan&) { return Affine{}; });
}

// The same with weight and bias, as of layer_norm.
template <class E, class W, class B>
auto layer_norm_by(const xt::xexpression<E>& x, const KnownStatistics& known,
                   const xt::xexpression<W>& weight, const xt::xexpression<B>& bias,
                   const LayerNormOptions& options = {}) {
  return detail::layer_norm_by(x, known, options, [&](const Plan& plan) {
    return detail::affine_of(plan, weight, bias, options);
  });
}

// The backward pass of layer_norm(x, weight, bias, options), in which bias has no part: the gradients of sum(dy * y)
// by x, weight and bias, as kernel/backward.hpp and kernel/parameter_gradients.hpp define them, with their accuracy.
// dy has the shape of x and any arithmetic type. Throws Error if shapes or options do not fit.
template <class G, class E, class W>
auto layer_norm_backward(const xt::xexpression<G>& dy, const xt::xexpression<E>& x,
                         const xt::xexpression<W>& weight, const LayerNormOptions& options = {}) {
  using T = detail::FloatOr<typename E::value_type, double>;
  using P = detail::FloatOr<typename W::value_type, T>;
  return detail::layer_norm_backward<P>(dy, x, options, [&](const Plan& plan) {
    const auto& shape = weight.derived_cast().shape();
    return std::pair{detail::affine_term("weight", weight, plan, options.zero_centered_weight),
                     Shape(shape.begin(), shape.end())};
  });
}

// Normalizes with a weight of 1.
template <class G, class E>
auto layer_norm_backward(const xt::xexpression<G>& dy, const xt::xexpression<E>& x,
                         const LayerNormOptions& options = {}) {
  using T = detail::FloatOr<typename E::value_type, double>;
  return detail::layer_norm_backward<T>(dy, x, options, [](const Plan& plan) {
    return std::pair{AffineTerm{}, plan.affine_shape()};
  });
}

}  // namespace lnorm
