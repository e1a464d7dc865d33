#include "lnorm/kernel/softmax.hpp"

#include "commands.hpp"
#include "each_tensor.hpp"
#include "lnorm/pipeline/run.hpp"
#include "progress_line.hpp"
#include "tell_route.hpp"

namespace lnorm::app {

int softmax(const SoftmaxArguments& arguments) {
  const OutputArguments& output = arguments.output;
  const WorkArguments& work = arguments.work;
  const auto transform = [](const RowsIn& x, const RowsOut& y, const MeanAndRstd&) {
    lnorm::softmax(x, y);
  };
  return for_each_tensor(
      arguments.input, {{"-o", output.path}}, [&](OpenedTensor& input, Outputs& outputs) {
        TensorSource& source = *input.source;
        check_as(arguments.input.options.as, source.info());
        const Plan plan =
            make_plan(source.info(), {arguments.axes, {}, false}, output.dtype, {.whole = true});
        OutputFile& result = outputs[0];
        result.begin(output, input, plan);
        outputs.check_effects(output);
        tell_route(work, plan, source, &result.sink());
        ProgressLine progress(result.fills_terminal() ? When::never : work.progress, source.info());
        run(source, plan, transform, {}, &result.sink(), {work.threads, progress.callback()});
      });
}

}  // namespace lnorm::app
