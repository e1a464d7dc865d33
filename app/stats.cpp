#include "lnorm/pipeline/stats.hpp"

#include "affine_inputs.hpp"
#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/report/stats_json.hpp"
#include "lnorm/report/stats_text.hpp"
#include "open_input.hpp"
#include "progress_line.hpp"
#include "terminal.hpp"

namespace lnorm::app {

int stats(const StatsArguments& arguments) {
  using Report = StatsArguments::Report;
  const NormalizationArguments& normalization = arguments.normalization;
  check_inputs(arguments.input, normalization);
  if (arguments.histogram && arguments.report != Report::text) {
    throw Error("--histogram is drawn in text, expected no --json or --csv beside it");
  }
  const Kernel& kernel = find_kernel(normalization.kernel);
  const OpenedTensor input = open_input(arguments.input);
  const TensorInfo& x = input.source->info();
  const Plan plan = make_plan(x, normalization.options, {}, RowOrder::c);
  const Affine affine = read_affine(normalization, arguments.input.options.as, plan);

  const auto transform = [&](const RowsIn& rows, const RowsOut& y, const RowStats& stats) {
    kernel.layer_norm(rows, y, affine, plan.formula, stats);
  };
  StatsObserver observer(plan, {arguments.softmax, arguments.histogram});
  RowObserver* const observers[] = {&observer};
  {
    ProgressLine progress(arguments.progress, x);
    run(*input.source, plan, transform, observers, nullptr,
        {arguments.threads, progress.callback()});
  }
  Stats stats = observer.stats(x);
  stats.weight = !affine.weight.empty();
  stats.zero_centered_weight = stats.weight && normalization.options.zero_centered_weight;
  stats.bias = !affine.bias.empty();
  ByteSink out("-");
  switch (arguments.report) {
    case Report::text:
      write_stats_text(stats, arguments.all, output_style(arguments.color), out);
      break;
    case Report::json:
      write_stats_json(stats, out);
      break;
    case Report::csv:
      write_stats_csv(stats, out);
      break;
  }
  out.finish();
  out.commit();
  return 0;
}

}  // namespace lnorm::app
