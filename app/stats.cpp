#include "lnorm/pipeline/stats.hpp"

#include "affine_inputs.hpp"
#include "commands.hpp"
#include "each_tensor.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/report/stats_json.hpp"
#include "lnorm/report/stats_text.hpp"
#include "progress_line.hpp"
#include "tell_route.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

Stats measure(const OpenedTensor& input, const StatsArguments& arguments, const Kernel& kernel,
              AffineInputs& affine_inputs) {
  const LayerNormOptions& options = arguments.normalization.options;
  const WorkArguments& work = arguments.work;
  TensorSource& source = *input.source;
  const TensorInfo& x = source.info();
  const Plan plan = make_plan(x, options, {}, {.whole = true, .ordered = true});
  const Affine& affine = affine_inputs.of(plan, input);
  affine_inputs.check_as(x);
  const auto transform = [&](const RowsIn& rows, const RowsOut& y, const MeanAndRstd& statistics) {
    kernel.layer_norm(rows, y, affine, plan.formula, statistics);
  };
  StatsObserver observer(plan, {arguments.softmax, arguments.histogram});
  RowObserver* const observers[] = {&observer};
  tell_route(work, plan, source, nullptr, kernel.name);
  {
    ProgressLine progress(work.progress, x);
    run(source, plan, transform, observers, nullptr, {work.threads, progress.callback()});
  }
  Stats stats = observer.stats(x);
  stats.weight = !affine.weight().empty();
  stats.zero_centered_weight = stats.weight && options.zero_centered_weight;
  stats.bias = !affine.bias().empty();
  return stats;
}

void write(const Stats& stats, const StatsArguments& arguments, ByteSink& out) {
  switch (arguments.report) {
    case Report::text:
      return write_stats_text(stats, {arguments.all, arguments.digits.value_or(3)},
                              output_style(arguments.color), out);
    case Report::json:
      return write_stats_json(stats, out);
    case Report::csv:
      return write_stats_csv(stats, out);
  }
}

}  // namespace

int stats(const StatsArguments& arguments) {
  const NormalizationArguments& normalization = arguments.normalization;
  check_inputs(arguments.input, normalization);
  const Kernel& kernel = find_kernel(normalization.kernel);
  AffineInputs affine_inputs(normalization, arguments.input.options.as);
  bool first = true;
  return for_each_tensor(
      arguments.input, {kStandardOutput}, [&](OpenedTensor& input, Outputs& outputs) {
        if (input.format == Format::jsonl && arguments.report == Report::csv) {
          throw Error("--csv is the table of one tensor, found JSON Lines",
                      concat(hint_to_name(input.source->info().name), ", or take --json"));
        }
        const Stats stats = measure(input, arguments, kernel, affine_inputs);
        ByteSink& out = outputs[0].bytes();
        if (!first && arguments.report == Report::text) out.write("\n");
        first = false;
        write(stats, arguments, out);
      });
}

}  // namespace lnorm::app
