#include "lnorm/pipeline/stats.hpp"

#include <map>
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
#include "observed_rows.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

class StatsOfRows {
 public:
  StatsOfRows(const Arguments& arguments, ByteSink& out)
      : arguments_(arguments),
        out_(out),
        rows_(arguments.input, arguments.normalization,
              arguments.report == Report::json  ? "--json"
              : arguments.report == Report::csv ? "--csv"
                                                : "") {}

  void check(const TensorInfo& x, const InputName& name) { rows_.check(x, name); }

  void report(OpenedTensor& input, const InputName& name, TensorWork& work) {
    if (!std::exchange(first_, false) && arguments_.report == Report::text) out_.write("\n");
    const TensorInfo x = input.source->info();
    std::optional<StatsObserver> observer;
    rows_.run(std::move(input.source), name, work, [&](const Plan& plan) -> RowObserver& {
      return observer.emplace(plan,
                              StatsObserver::Wanted{arguments_.softmax, arguments_.histogram});
    });
    Stats stats = observer->stats(x);
    rows_.describe(stats);
    observer->report([&] {
      write_report(arguments_.report, stats, out_,
                   StatsTextOptions{arguments_.all, arguments_.digits.value_or(3)},
                   output_style(arguments_.color));
    });
    if (input.format == Format::jsonl) out_.flush();
  }

 private:
  const Arguments& arguments_;
  ByteSink& out_;
  ObservedRows rows_;
  bool first_ = true;
};

int report_rows(const Arguments& arguments, const Inputs& inputs, ByteSink& out) {
  StatsOfRows of_rows(arguments, out);
  Outputs none;
  return for_each_tensor(
      inputs, none, arguments,
      look_at([&](const TensorInfo& x, const InputName& name) { of_rows.check(x, name); },
              [&](OpenedTensor& tensor, const InputName& name, TensorWork& work) {
                of_rows.report(tensor, name, work);
              }));
}

// A line a tensor, of the input alone.
int report_tensors(const Arguments& arguments, const Selection& selection, ByteSink& out) {
  const LayerNormOptions& options = arguments.normalization.options;
  const auto plan = [&](const TensorInfo& x) {
    return make_plan(x, options, {}, {.whole = true, .ordered = true});
  };
  std::vector<NamedStats> found;
  Outputs none;
  const int status = for_each_tensor(
      selection, none, arguments,
      look_at(
          [&](const TensorInfo& x, const InputName&) {
            check_as(arguments.input.options.as, x);
            plan(x);
          },
          [&](OpenedTensor& tensor, const InputName& name, TensorWork& work) {
            TensorSource& source = *tensor.source;
            const Plan rows = plan(source.info());
            TensorStats stats = measure_tensor(source, rows, work.begin(rows, source));
            if (work.has_report()) found.push_back({name.title, std::move(stats)});
          },
          Deal::by_size));
  gather(*arguments.work.ranks, found);
  std::map<std::string_view, const NamedStats*> by_title;
  for (const NamedStats& tensor : found) by_title.emplace(tensor.name, &tensor);
  std::vector<NamedStats> in_order;
  for (const Selected& tensor : selection.tensors) {
    const auto stats = by_title.find(tensor.title);
    if (stats != by_title.end()) in_order.push_back(*stats->second);
  }
  write_report(arguments.report, in_order, out, arguments.digits.value_or(3),
               output_style(arguments.color));
  return status;
}

// For options that ask for what a line has no room for.
void check_tensors(const Arguments& arguments) {
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

int stats(const Arguments& arguments) {
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
