#include "lnorm/pipeline/explain.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "commands.hpp"
#include "companions.hpp"
#include "lnorm/core/axes.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/layout/row_slice.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/reports.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

// The number of the row in C order. Throws Error if there is no such row.
std::int64_t number_of(Shape index, const TensorInfo& x, const Axes& axes) {
  const Axes kept = kept_axes(x.shape, axes);
  const Shape rows = extents(x.shape, kept);
  const std::string row = index.size() == 1 ? std::to_string(index[0]) : to_string(index);
  const std::string where = concat(printable(x.name), ": --row ", row);
  const std::int64_t count = element_count(rows);
  if (index.size() > 1 && index.size() != rows.size()) {
    throw Error(concat(where, " has ", index.size(), " numbers, expected ",
                       rows.size() > 1 ? concat("one or ", rows.size()) : "one",
                       ": rows are numbered ", row_name(0, rows), " to ", row_name(count - 1, rows),
                       " along ", axes_text(kept)));
  }
  const Shape sizes = index.size() == 1 ? Shape{count} : rows;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (index[i] >= -sizes[i] && index[i] < sizes[i]) {
      index[i] += index[i] < 0 ? sizes[i] : 0;
    } else if (kept.empty()) {
      throw Error(concat(where, " is out of range, all elements are one row"),
                  "without --row it is explained");
    } else {
      throw Error(concat(where, " is out of range, expected ", -sizes[i], " to ", sizes[i] - 1,
                         sizes.size() == kept.size() ? concat(" along axis ", kept[i]) : ""));
    }
  }
  return position_of(index, sizes);
}

// Which rows of x. Throws Error if it has none, unless some are chosen by their range.
RowChoice rows_to_explain(const Arguments& arguments, const TensorInfo& x) {
  const NormalizedAxes& axes = arguments.normalization.options.axes;
  const std::optional<RowRange>& range = arguments.input.rows;
  RowChoice choice = rows_in(range.value_or(RowRange{}), x, axes);
  if (range) return choice;
  if (choice.count == 0) {
    throw Error(concat(printable(x.name), ": shape ", to_string(x.shape), " has no rows"));
  }
  if (arguments.row) choice.first = number_of(*arguments.row, x, choice.axes);
  choice.count = 1;
  return choice;
}

class Explainer {
 public:
  Explainer(const Arguments& arguments, ByteSink& out)
      : arguments_(arguments),
        out_(out),
        backend_(find_backend(arguments.normalization.kernel)),
        companions_(arguments) {}

  Plan check(const TensorInfo& x, const InputName& name) {
    Plan plan = companions_.plan(x, name, {.ordered = true, .keeps_order = true});
    companions_.check_affine(plan, x, name);
    companions_.check(Companions::kGiven, x, name);
    if (arguments_.input.rows && plan.rows == 0) {
      throw Error(
          concat("--rows leaves no row of ", printable(x.name), ", expected some to explain"));
    }
    return plan;
  }

  // Every row of a slice.
  void run(OpenedTensor& input, const InputName& name, TensorWork&) {
    const TensorInfo x = input.source->info();
    const Plan all = check(x, name);
    const Affine& affine = companions_.affine(all);
    std::optional<GivenStatistics> given;
    if (const auto* const found = companions_.given(all)) given = *found;
    auto rows = companions_.add_residual(std::move(input.source), all.out, arguments_.work.threads);
    if (all.rows > 1 && !rows->has_random_access()) rows = spooled(*rows);
    const Axes axes = resolve_axes(x, arguments_.normalization.options.axes);
    for (std::int64_t row = 0; row < all.rows; ++row) {
      const auto one = rows_of(std::make_unique<LentSource>(*rows), axes, row, 1);
      explain_row(*one, whole_of(x), all.out, affine, given);
    }
    rows->finish();
    companions_.finish();
    if (input.format == Format::jsonl) out_.flush();
  }

 private:
  void explain_row(TensorSource& row, const TensorInfo& x, DType out, const Affine& affine,
                   std::optional<GivenStatistics>& given) {
    const NormalizationArguments& normalization = arguments_.normalization;
    const RowSlice& slice = *row.info().slice;
    Explanation result{.x = x,
                       .axes = slice.axes,
                       .options = normalization.options,
                       .out = out,
                       .weight = companions_.has(TensorRole::weight),
                       .bias = companions_.has(TensorRole::bias),
                       .residual = companions_.has(TensorRole::residual),
                       .rounds_sum = normalization.round_sum,
                       .number = slice.first,
                       .note = arguments_.row || arguments_.input.rows ? "" : "--row names another",
                       .row = {}};
    const Plan plan = make_plan(row.info(), normalization.options, out, {.keeps_order = true});
    if (given) given->layout = plan.statistics;
    WorkArguments alone = arguments_.work;
    alone.threads = 1;
    TensorWork work(alone, *alone.ranks, alone.progress);
    const RunOptions options = work.begin(plan, row, nullptr, backend_.name);
    result.row = lnorm::explain(row, plan, backend_, companions_.weight(), companions_.bias(),
                                affine, given ? &*given : nullptr,
                                normalization.options.rounding.xhat, options.progress);
    work.end();
    write(result);
  }

  void write(const Explanation& explanation) {
    if (arguments_.report == Report::json) return write_json(explanation, out_);
    if (!std::exchange(first_, false)) out_.write("\n");
    write_text(explanation, arguments_.digits.value_or(4), output_style(arguments_.color), out_);
  }

  const Arguments& arguments_;
  ByteSink& out_;
  const Backend& backend_;
  Companions companions_;
  bool first_ = true;
};

}  // namespace

int explain(const Arguments& arguments) {
  const Inputs inputs = open_inputs(arguments);
  check_named(inputs);
  ByteSink out("-");
  Explainer explainer(arguments, out);
  const int status = look_at_each(inputs, arguments, explainer, [&](const TensorInfo& x) {
    return rows_to_explain(arguments, x);
  });
  out.finish();
  out.commit();
  return status;
}

}  // namespace lnorm::app
