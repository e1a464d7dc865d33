#include "lnorm/kernel/softmax.hpp"

#include <vector>

#include "affine_inputs.hpp"
#include "commands.hpp"
#include "each_tensor.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm::app {

int softmax(const Arguments& arguments) {
  const InputArguments& input = arguments.input;
  refuse_streams(*arguments.work.ranks, input.names);
  const double scale = arguments.output.scale.value_or(1);
  const auto transform = [=](const RowsIn& x, const RowsOut& y, const MeanAndRstd&) {
    lnorm::softmax(x, y, scale);
  };
  const auto make = [&](const TensorInfo& x) {
    Plan plan = make_plan(x, {arguments.normalization.options.axes, {}, false},
                          arguments.output.dtype, {.whole = true, .in_tiles = true});
    plan.saturates = arguments.output.saturates;
    check_float8(arguments.output, plan.out);
    return plan;
  };
  Outputs outputs({{"-o", arguments.output.path, "", true}}, arguments);
  const auto plan_tensor = [&](const TensorInfo& x, const InputName&) {
    check_as(input.options.as, x);
    return std::vector{make(x).result()};
  };
  const auto run_tensor = [&](OpenedTensor& tensor, const InputName&, TensorWork& work) {
    TensorSource& source = *tensor.source;
    const Plan plan = make(source.info());
    TensorSink& sink = outputs.sink(0);
    run(source, plan, transform, {}, &sink, work.begin(plan, source, &sink));
  };
  const Inputs inputs = open_inputs(input.names, input.options);
  check_named(inputs);
  return for_each_tensor(inputs, outputs, arguments, {plan_tensor, run_tensor, Deal::by_size});
}

}  // namespace lnorm::app
