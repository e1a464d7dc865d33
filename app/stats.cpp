#include "lnorm/pipeline/stats.hpp"

#include <optional>

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

namespace {

using Report = StatsArguments::Report;

Stats measure(const OpenedTensor& input, const StatsArguments& arguments, const Kernel& kernel,
              AffineInputs& affine_inputs) {
  const NormalizationArguments& normalization = arguments.normalization;
  TensorSource& source = *input.source;
  const TensorInfo& x = source.info();
  const Plan plan = make_plan(x, normalization.options, {}, {.whole = true, .ordered = true});
  const Affine& affine = affine_inputs.of(plan, input);
  const auto transform = [&](const RowsIn& rows, const RowsOut& y, const RowStats& stats) {
    kernel.layer_norm(rows, y, affine, plan.formula, stats);
  };
  StatsObserver observer(plan, {arguments.softmax, arguments.histogram});
  RowObserver* const observers[] = {&observer};
  {
    ProgressLine progress(arguments.progress, x);
    run(source, plan, transform, observers, nullptr, {arguments.threads, progress.callback()});
  }
  Stats stats = observer.stats(x);
  stats.weight = !affine.weight.empty();
  stats.zero_centered_weight = stats.weight && normalization.options.zero_centered_weight;
  stats.bias = !affine.bias.empty();
  return stats;
}

void write(const Stats& stats, const StatsArguments& arguments, ByteSink& out) {
  switch (arguments.report) {
    case Report::text:
      return write_stats_text(stats, arguments.all, output_style(arguments.color), out);
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
  if (arguments.histogram && arguments.report != Report::text) {
    throw Error("--histogram is drawn in text, expected no --json or --csv beside it");
  }
  const Kernel& kernel = find_kernel(normalization.kernel);
  Inputs inputs(arguments.input);
  AffineInputs affine_inputs(normalization, arguments.input.options.as);
  std::optional<ByteSink> out;
  while (const std::optional<OpenedTensor> input = inputs.next()) {
    if (input->format == Format::jsonl && arguments.report == Report::csv) {
      throw Error("--csv is the table of one tensor, found JSON Lines",
                  "name a line by adding its number to the path, x.jsonl:1, or take --json");
    }
    const Stats stats = measure(*input, arguments, kernel, affine_inputs);
    if (out && arguments.report == Report::text) out->write("\n");
    if (!out) out.emplace("-");
    write(stats, arguments, *out);
    if (input->format == Format::jsonl) out->flush();
  }
  if (!out) out.emplace("-");
  out->finish();
  out->commit();
  return 0;
}

}  // namespace lnorm::app
