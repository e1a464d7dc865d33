#include "lnorm/pipeline/stats.hpp"

#include <utility>
#include <vector>

#include "affine_inputs.hpp"
#include "commands.hpp"
#include "each_tensor.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/report/stats_json.hpp"
#include "lnorm/report/stats_text.hpp"
#include "progress_line.hpp"
#include "tell_route.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

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

class StatsOfRows {
 public:
  StatsOfRows(const StatsArguments& arguments, ByteSink& out)
      : arguments_(arguments),
        out_(out),
        kernel_(find_kernel(arguments.normalization.kernel)),
        affine_inputs_(arguments.normalization, arguments.input.options.as) {}

  void check(const TensorInfo& x, const InputName& name) { affine_inputs_.check(plan(x), x, name); }

  void report(const OpenedTensor& input, const InputName& name) {
    if (!std::exchange(first_, false) && arguments_.report == Report::text) out_.write("\n");
    write(measure(*input.source, name), arguments_, out_);
    if (input.format == Format::jsonl) out_.flush();
  }

 private:
  Plan plan(const TensorInfo& x) const {
    return make_plan(x, arguments_.normalization.options, {}, {.whole = true, .ordered = true});
  }

  Stats measure(TensorSource& source, const InputName& name) {
    const WorkArguments& work = arguments_.work;
    const TensorInfo& x = source.info();
    const Plan plan = this->plan(x);
    const Affine& affine = affine_inputs_.of(plan, x, name);
    const auto transform = [&](const RowsIn& rows, const RowsOut& y,
                               const MeanAndRstd& statistics) {
      kernel_.layer_norm(rows, y, affine, plan.formula, statistics);
    };
    StatsObserver observer(plan, {arguments_.softmax, arguments_.histogram});
    RowObserver* const observers[] = {&observer};
    tell_route(work, plan, source, nullptr, kernel_.name);
    {
      ProgressLine progress(work.progress, x);
      run(source, plan, transform, observers, nullptr, {work.threads, progress.callback()});
    }
    Stats stats = observer.stats(x);
    stats.weight = !affine.weight().empty();
    stats.zero_centered_weight =
        stats.weight && arguments_.normalization.options.zero_centered_weight;
    stats.bias = !affine.bias().empty();
    return stats;
  }

  const StatsArguments& arguments_;
  ByteSink& out_;
  const Kernel& kernel_;
  AffineInputs affine_inputs_;
  bool first_ = true;
};

}  // namespace

int stats(const StatsArguments& arguments) {
  const InputArguments& input = arguments.input;
  check_inputs(input, arguments.normalization);
  const Inputs inputs = open_inputs(input.names, input.options);
  if (std::holds_alternative<TensorLines>(inputs) && arguments.report == Report::csv) {
    const std::string line = concat(input.names.front(), ":1");
    throw Error("--csv is the table of one tensor, found JSON Lines",
                concat("name one: ", shell_word(line), ", or take --json"));
  }
  ByteSink out("-");
  StatsOfRows of_rows(arguments, out);
  Outputs none;
  const int status = for_each_tensor(
      inputs, none,
      {[&](const TensorInfo& x, const InputName& name) {
         of_rows.check(x, name);
         return std::vector<TensorInfo>();
       },
       [&](OpenedTensor& tensor, const InputName& name, Outputs&) { of_rows.report(tensor, name); },
       input.keep_going});
  out.finish();
  out.commit();
  return status;
}

}  // namespace lnorm::app
