#include "lnorm/kernel/softmax.hpp"

#include <vector>

#include "affine_inputs.hpp"
#include "commands.hpp"
#include "each_tensor.hpp"
#include "lnorm/pipeline/run.hpp"
#include "log_plan.hpp"
#include "progress_line.hpp"

namespace lnorm::app {

int softmax(const SoftmaxArguments& arguments) {
  const InputArguments& input = arguments.input;
  const WorkArguments& work = arguments.work;
  refuse_streams(*work.ranks, input.names);
  const double scale = arguments.output.scale.value_or(1);
  const auto transform = [=](const RowsIn& x, const RowsOut& y, const MeanAndRstd&) {
    lnorm::softmax(x, y, scale);
  };
  const auto make = [&](const TensorInfo& x) {
    Plan plan = make_plan(x, {arguments.axes, {}, false}, arguments.output.dtype,
                          {.whole = true, .in_tiles = true});
    plan.saturates = arguments.output.saturates;
    check_float8(arguments.output, plan.out);
    return plan;
  };
  Outputs outputs({{"-o", arguments.output.path, "", true}}, arguments.output, *work.ranks);
  const auto plan_tensor = [&](const TensorInfo& x, const InputName&) {
    check_as(input.options.as, x);
    return std::vector{make(x).result()};
  };
  const auto run_tensor = [&](OpenedTensor& tensor, const InputName&, Outputs&, Ranks& ranks) {
    TensorSource& source = *tensor.source;
    const Plan plan = make(source.info());
    TensorSink& sink = outputs.sink(0);
    log_plan(work, plan, source, &sink, {}, ranks.count() > 1);
    ProgressLine progress(outputs.result().fills_terminal() ? When::never : work.progress,
                          source.info());
    run(source, plan, transform, {}, &sink, {work.threads, progress.callback(), &ranks});
  };
  const Inputs inputs = open_inputs(input.names, input.options);
  check_named(inputs);
  return for_each_tensor(inputs, outputs,
                         {plan_tensor, run_tensor, input.keep_going,
                          rows_in(input.rows, arguments.axes), work.ranks, Deal::by_size});
}

}  // namespace lnorm::app
