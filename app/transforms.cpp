#include <algorithm>
#include <cstdint>
#include <functional>

#include "commands.hpp"
#include "companions.hpp"
#include "each_tensor.hpp"
#include "lnorm/kernel/convert.hpp"
#include "lnorm/kernel/softmax.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/run.hpp"

// The commands that write what becomes of each row of an input, and of nothing else.
namespace lnorm::app {

namespace {

// To -o. Returns the exit status.
int transform_inputs(const Inputs& inputs, const Arguments& arguments,
                     const std::function<Plan(const TensorInfo& x)>& make_plan,
                     const Transform& transform) {
  const auto make = [&](const TensorInfo& x) {
    Plan plan = make_plan(x);
    plan.saturates = arguments.output.saturates;
    check_float8(arguments.output, plan.out);
    return plan;
  };
  Outputs outputs({{"-o", arguments.output.path, "", true}}, arguments);
  const auto plan_tensor = [&](const TensorInfo& x, const InputName&) {
    check_as(arguments.input.options.as, x);
    return std::vector{make(x).result()};
  };
  const auto run_tensor = [&](OpenedTensor& tensor, const InputName&, TensorWork& work) {
    TensorSource& source = *tensor.source;
    const Plan plan = make(source.info());
    TensorSink& sink = outputs.sink(0);
    run(source, plan, transform, {}, &sink, work.begin(plan, source, &sink));
  };
  return for_each_tensor(inputs, outputs, arguments, {plan_tensor, run_tensor, Deal::by_size});
}

// An element is converted by itself: a row is as many of the last axes as make a block of some size.
NormalizedShape row_to_convert(const Shape& shape) {
  constexpr std::int64_t kMaxRow = 16384;
  auto first = shape.end();
  for (std::int64_t length = 1; first != shape.begin(); --first) {
    const std::int64_t extent = *(first - 1);
    if (extent > kMaxRow / std::max<std::int64_t>(1, length)) break;
    length *= extent;
  }
  return {{first, shape.end()}};
}

}  // namespace

int softmax(const Arguments& arguments) {
  const double scale = arguments.output.scale.value_or(1);
  const auto transform = [=](const RowsIn& x, const RowsOut& y, const RowNumbersOut&) {
    lnorm::softmax(x, y, scale);
  };
  const auto plan = [&](const TensorInfo& x) {
    return make_plan(x, {arguments.normalization.options.axes, {}, false}, arguments.output.dtype,
                     {.whole = true, .in_tiles = true});
  };
  const Inputs inputs = open_inputs(arguments);
  check_named(inputs);
  return transform_inputs(inputs, arguments, plan, transform);
}

int convert(const Arguments& arguments) {
  const auto transform = [](const RowsIn& x, const RowsOut& y, const RowNumbersOut&) {
    lnorm::convert(x, y);
  };
  const auto plan = [&](const TensorInfo& x) {
    return make_plan(x, {row_to_convert(x.shape), {}, false},
                     arguments.output.dtype.value_or(x.dtype),
                     {.whole = true, .in_tiles = true, .any_dtype = true});
  };
  return transform_inputs(open_inputs(arguments), arguments, plan, transform);
}

}  // namespace lnorm::app
