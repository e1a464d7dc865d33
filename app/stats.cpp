#include "lnorm/pipeline/stats.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "observed_rows.hpp"
#include "options.hpp"
#include "report_output.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

// The table of every tensor.
int report_rows(const Arguments& arguments, const Inputs& inputs, ByteSink& out) {
  ObservedRows rows(arguments, arguments.report == Report::json  ? "--json"
                               : arguments.report == Report::csv ? "--csv"
                                                                 : "");
  bool is_first = true;
  return look_at_each_by(
      inputs, arguments,
      [&](const TensorInfo& x, const InputName& name) {
        rows.check(x, name);
        rows.Companions::check({TensorRole::mask}, x, name);
      },
      [&](OpenedTensor& input, const InputName& name, TensorWork& work) {
        if (!std::exchange(is_first, false) && arguments.report == Report::text) out.write("\n");
        const TensorInfo x = input.source->info();
        std::optional<StatsObserver> observer;
        rows.run(std::move(input.source), name, work, [&](const Plan& plan) -> RowObserver& {
          return observer.emplace(
              plan,
              StatsObserver::Wanted{arguments.softmax, arguments.histogram,
                                    rows.row_mask(x, plan.axes, name), arguments.work.threads});
        });
        Stats stats = observer->stats(x);
        rows.describe(stats);
        stats.top = arguments.top;
        observer->report([&] {
          write_report(arguments.report, std::tie(stats), out,
                       StatsTextOptions{arguments.all, arguments.digits.value_or(3)},
                       output_style(arguments.color));
        });
        if (input.format == Format::jsonl) out.flush();
      });
}

// The features of every tensor.
int report_features(const Arguments& arguments, const Inputs& inputs, ByteSink& out) {
  Companions companions(arguments);
  SharedFeatures shared(arguments.top.value_or(Top{.most = 5}));
  bool is_first = true;
  const int status = look_at_each_by(
      inputs, arguments,
      [&](const TensorInfo& x, const InputName& name) {
        check_as(arguments.input.options.as, x);
        companions.plan(x, name, {.over_rows = true});
        companions.check({TensorRole::mask}, x, name);
      },
      [&](OpenedTensor& tensor, const InputName& name, TensorWork& work) {
        if (!is_first && arguments.report == Report::text) out.write("\n");
        const TensorInfo x = tensor.source->info();
        const Plan plan = companions.plan(x, name, {.over_rows = true});
        const auto source =
            companions.add_residual(std::move(tensor.source), plan.rounding, work.threads());
        FeatureStats found = measure_features(*source, plan, work.begin(plan, *source),
                                              companions.row_mask(x, plan.axes, name));
        found.x.dtype = x.dtype;  // not that of the sum
        found.residual = companions.has(TensorRole::residual);
        work.end();
        companions.finish();
        if (!work.has_report()) return;
        FeatureReport report{{arguments.all, arguments.digits.value_or(3)}, arguments.top};
        if (name.several) report.tensor = name.title;
        report.has_names = std::exchange(is_first, false);
        report.in_parallel = in_parallel(work.threads());
        write_report(arguments.report, std::tie(found, report), out, output_style(arguments.color));
        if (std::holds_alternative<Selection>(inputs)) shared.add(name.title, found);
      });
  if (arguments.report == Report::text) write_text(shared, output_style(arguments.color), out);
  return status;
}

// A line a tensor, of the input alone.
int report_tensors(const Arguments& arguments, const Selection& selection, ByteSink& out) {
  std::vector<NamedStats> found;
  Companions companions(arguments);
  const int status = look_at_each_by(
      selection, arguments,
      [&](const TensorInfo& x, const InputName& name) {
        check_as(arguments.input.options.as, x);
        companions.plan(x, name);
        companions.check({TensorRole::mask}, x, name);
      },
      [&](OpenedTensor& tensor, const InputName& name, TensorWork& work) {
        TensorSource& source = *tensor.source;
        const Plan rows = companions.plan(source.info(), name);
        const auto left = companions.row_mask(source.info(), rows.axes, name);
        TensorStats stats = measure_tensor(source, rows, work.begin(rows, source), left);
        if (work.has_report()) found.push_back({name.title, std::move(stats)});
      },
      Deal::by_size);
  gather(*arguments.work.ranks, found);
  std::map<std::string_view, const NamedStats*> by_title;
  for (const NamedStats& tensor : found) by_title.emplace(tensor.name, &tensor);
  std::vector<NamedStats> in_order;
  for (const Selected& tensor : selection.tensors) {
    const auto stats = by_title.find(tensor.title);
    if (stats != by_title.end()) in_order.push_back(*stats->second);
  }
  write_report(arguments.report, std::tie(in_order, arguments.top), out,
               arguments.digits.value_or(3), output_style(arguments.color));
  return status;
}

// For options that ask for what a line has no room for.
void check_tensors(const Arguments& arguments) {
  const TensorWords& tensors = arguments.tensors;
  const Formula& formula = arguments.normalization.options.formula;
  const std::string_view option = !option_of(formula).empty()              ? option_of(formula)
                                  : formula.eps != Formula().eps           ? "--eps"
                                  : formula.eps_on != Formula().eps_on     ? "--eps-on"
                                  : arguments.softmax                      ? "--softmax"
                                  : tensors.contains(TensorRole::weight)   ? "--weight"
                                  : tensors.contains(TensorRole::bias)     ? "--bias"
                                  : tensors.contains(TensorRole::residual) ? "--residual"
                                                                           : "";
  if (option.empty()) return;
  throw Error(
      concat(option, " has no effect: several tensors have a line each, of the input alone"),
      "--all gives every tensor its table");
}

}  // namespace

int stats(const Arguments& arguments) {
  const InputArguments& input = arguments.input;
  const Inputs inputs = open_inputs(arguments);
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
  if (arguments.top && arguments.top->by == TopBy::zeros && !arguments.features) {
    throw Error("--by zeros has no effect without --features: it is of features alone");
  }
  if (is_table && !arguments.features) check_tensors(arguments);
  // A norm is one of whole rows.
  const std::string_view of_output = arguments.first_of(
      "--softmax --weight --bias --rms --eps --eps-on --mean --rstd --variance --round");
  if (arguments.tensors.contains(TensorRole::mask) && !of_output.empty()) {
    throw Error(concat(of_output, " has no effect beside --mask: figures are of the input alone"));
  }
  int status = 0;
  save_report("", "-", [&](ByteSink& out) {
    status = arguments.features ? report_features(arguments, inputs, out)
             : is_table         ? report_tensors(arguments, *selection, out)
                                : report_rows(arguments, inputs, out);
  });
  return status;
}

}  // namespace lnorm::app
