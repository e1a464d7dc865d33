#include "transform_inputs.hpp"

#include <vector>

namespace lnorm::app {

int transform_inputs(const Inputs& inputs, const Arguments& arguments, const MakePlan& make_plan,
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

}  // namespace lnorm::app
