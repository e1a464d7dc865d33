#include "lnorm/kernel/softmax.hpp"

#include <optional>

#include "commands.hpp"
#include "lnorm/pipeline/run.hpp"
#include "open_input.hpp"
#include "output_file.hpp"
#include "progress_line.hpp"

namespace lnorm::app {

int softmax(const SoftmaxArguments& arguments) {
  Inputs inputs(arguments.input);
  std::optional<OutputFile> result;
  while (const std::optional<OpenedTensor> input = inputs.next()) {
    const Plan plan = make_plan(input->source->info(), {arguments.axes, {}, false},
                                arguments.output.dtype, {.whole = true});
    if (!result) result.emplace(arguments.output.path);
    result->begin(arguments.output, *input, plan);
    const auto transform = [](const RowsIn& x, const RowsOut& y, const RowStats&) {
      lnorm::softmax(x, y);
    };
    ProgressLine progress(result->fills_terminal() ? When::never : arguments.progress,
                          input->source->info());
    run(*input->source, plan, transform, {}, &result->sink(),
        {arguments.threads, progress.callback()});
    result->end();
  }
  if (!result) result.emplace(arguments.output.path);
  result->finish();
  result->commit();
  return 0;
}

}  // namespace lnorm::app
