#include "lnorm/pipeline/stats.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "affine_inputs.hpp"
#include "commands.hpp"
#include "each_tensor.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/pipeline/tensor_stats.hpp"
#include "lnorm/report/stats_json.hpp"
#include "lnorm/report/stats_text.hpp"
#include "lnorm/report/tensor_stats_report.hpp"
#include "log_plan.hpp"
#include "observed_rows.hpp"
#include "progress_line.hpp"
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
        rows_(arguments.input, arguments.normalization, arguments.work,
              arguments.report == Report::json  ? "--json"
              : arguments.report == Report::csv ? "--csv"
                                                : "") {}

  void check(const TensorInfo& x, const InputName& name) { rows_.check(x, name); }

  void report(OpenedTensor& input, const InputName& name) {
    if (!std::exchange(first_, false) && arguments_.report == Report::text) out_.write("\n");
    const TensorInfo x = input.source->info();
    std::optional<StatsObserver> observer;
    rows_.run(std::move(input.source), name, [&](const Plan& plan) -> RowObserver& {
      return observer.emplace(plan,
                              StatsObserver::Wanted{arguments_.softmax, arguments_.histogram});
    });
    Stats stats = observer->stats(x);
    rows_.describe(stats);
    observer->report([&] { write(stats, arguments_, out_); });
    if (input.format == Format::jsonl) out_.flush();
  }

 private:
  const StatsArguments& arguments_;
  ByteSink& out_;
  ObservedRows rows_;
  bool first_ = true;
};

int report_rows(const StatsArguments& arguments, const Inputs& inputs, ByteSink& out) {
  StatsOfRows of_rows(arguments, out);
  Outputs none;
  return for_each_tensor(
      inputs, none,
      {[&](const TensorInfo& x, const InputName& name) {
         of_rows.check(x, name);
         return std::vector<TensorInfo>();
       },
       [&](OpenedTensor& tensor, const InputName& name, Outputs&, Ranks&) {
         of_rows.report(tensor, name);
       },
       arguments.input.keep_going,
       rows_in(arguments.input.rows, arguments.normalization.options.axes), arguments.work.ranks});
}

// Of the tensor of a title.
struct TitledStats {
  std::string title;
  TensorStats stats;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(title, stats);
  }
};

std::unique_ptr<TensorStatsReport> make_report(const StatsArguments& arguments, ByteSink& out) {
  switch (arguments.report) {
    case Report::json:
      return make_tensor_stats_json(out);
    case Report::csv:
      return make_tensor_stats_csv(out);
    case Report::text:
      break;
  }
  return make_tensor_stats_text(arguments.digits.value_or(3), output_style(arguments.color), out);
}

// A line a tensor, of the input alone.
int report_tensors(const StatsArguments& arguments, const Selection& selection, ByteSink& out) {
  const LayerNormOptions& options = arguments.normalization.options;
  const WorkArguments& work = arguments.work;
  const auto plan = [&](const TensorInfo& x) {
    return make_plan(x, options, {}, {.whole = true, .ordered = true});
  };
  std::vector<TitledStats> found;
  Outputs none;
  const int status = for_each_tensor(
      selection, none,
      {[&](const TensorInfo& x, const InputName&) {
         check_as(arguments.input.options.as, x);
         plan(x);
         return std::vector<TensorInfo>();
       },
       [&](OpenedTensor& tensor, const InputName& name, Outputs&, Ranks& ranks) {
         TensorSource& source = *tensor.source;
         const Plan rows = plan(source.info());
         log_plan(work, rows, source, nullptr, {}, ranks.count() > 1);
         ProgressLine progress(work.progress, source.info());
         TensorStats stats =
             measure_tensor(source, rows, {work.threads, progress.callback(), &ranks});
         if (ranks.is_first()) found.push_back({name.title, std::move(stats)});
       },
       arguments.input.keep_going,
       rows_in(arguments.input.rows, arguments.normalization.options.axes), work.ranks,
       Deal::by_size});
  gather(*work.ranks, found);
  std::map<std::string_view, const TensorStats*> by_title;
  for (const TitledStats& of_tensor : found) by_title.emplace(of_tensor.title, &of_tensor.stats);
  const auto report = make_report(arguments, out);
  for (const Selected& tensor : selection.tensors) {
    const auto stats = by_title.find(tensor.title);
    if (stats != by_title.end()) report->add(tensor.title, *stats->second);
  }
  report->finish();
  return status;
}

// For options that ask for what a line has no room for.
void check_tensors(const StatsArguments& arguments) {
  const NormalizationArguments& normalization = arguments.normalization;
  const Formula& formula = normalization.options.formula;
  const std::string_view option = formula.rms                          ? "--rms"
                                  : formula.eps != Formula().eps       ? "--eps"
                                  : formula.eps_on != Formula().eps_on ? "--eps-on"
                                  : arguments.softmax                  ? "--softmax"
                                  : normalization.weight               ? "--weight"
                                  : normalization.bias                 ? "--bias"
                                  : normalization.residual             ? "--residual"
                                                                       : "";
  if (option.empty()) return;
  throw Error(
      concat(option, " has no effect: several tensors have a line each, of the input alone"),
      "--all gives every tensor its table");
}

}  // namespace

int stats(const StatsArguments& arguments) {
  const InputArguments& input = arguments.input;
  check_inputs(input, arguments.normalization, arguments.work);
  const Inputs inputs = open_inputs(input.names, input.options);
  if (std::holds_alternative<TensorLines>(inputs) && arguments.report == Report::csv) {
    const std::string& word = input.names.front();
    const bool has_member = word.find(':') != word.npos;
    throw Error("--csv is the table of one tensor, found JSON Lines",
                has_member ? "take --json"
                           : concat("name one: ", shell_word(word + ":1"), ", or take --json"));
  }
  const auto* const selection = std::get_if<Selection>(&inputs);
  const bool is_table =
      selection != nullptr && selection->several && !arguments.all && !arguments.histogram;
  if (is_table) check_tensors(arguments);
  ByteSink out("-");
  const int status =
      is_table ? report_tensors(arguments, *selection, out) : report_rows(arguments, inputs, out);
  out.finish();
  out.commit();
  return status;
}

}  // namespace lnorm::app
