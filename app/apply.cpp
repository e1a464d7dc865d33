#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "affine_inputs.hpp"
#include "commands.hpp"
#include "each_tensor.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/long_rows.hpp"
#include "lnorm/pipeline/row_writer.hpp"
#include "lnorm/pipeline/run.hpp"
#include "lnorm/pipeline/sum_writer.hpp"
#include "log_plan.hpp"
#include "progress_line.hpp"
#include "residual_input.hpp"

namespace lnorm::app {

int apply(const ApplyArguments& arguments) {
  const InputArguments& input = arguments.input;
  const NormalizationArguments& normalization = arguments.normalization;
  const WorkArguments& work = arguments.work;
  check_inputs(input, normalization, work);
  if (normalization.options.formula.rms && arguments.save_mean) {
    throw Error("--rms subtracts no mean, so that there is none for --save-mean");
  }
  const Kernel& kernel = find_kernel(normalization.kernel);
  ResidualInput residual(normalization, input.options.as);
  AffineInputs affine_inputs(normalization, input.options.as, residual,
                             arguments.output.scale.value_or(1));
  const bool saves = arguments.save_mean || arguments.save_rstd;
  const auto make = [&](const TensorInfo& x, DType out) {
    Plan plan = make_plan(x, normalization.options, out, {.in_tiles = !arguments.save_sum});
    plan.wants_mean_and_rstd = saves;
    plan.saturates = arguments.output.saturates;
    check_float8(arguments.output, plan.out);
    if (arguments.save_sum && is_float8(plan.out)) {
      throw Error(concat("--save-sum is in the output dtype, found ", name(plan.out),
                         ", expected float16, bfloat16, float32 or float64"));
    }
    if (saves) check_empty_rows(plan, x.name, "--save-mean and --save-rstd of");
    return plan;
  };
  std::vector<OutputName> names{{"-o", arguments.output.path, "", true}};
  std::vector<std::span<const double> RowBlock::*> columns;  // of the other outputs
  if (arguments.save_mean) {
    names.push_back({"--save-mean", *arguments.save_mean, "mean"});
    columns.push_back(&RowBlock::mean);
  }
  if (arguments.save_rstd) {
    names.push_back({"--save-rstd", *arguments.save_rstd, "rstd"});
    columns.push_back(&RowBlock::rstd);
  }
  if (arguments.save_sum) names.push_back({"--save-sum", *arguments.save_sum, "sum"});
  Outputs outputs(std::move(names), arguments.output, *work.ranks);

  const auto plan_tensor = [&](const TensorInfo& x, const InputName& name) {
    const DType out = output_dtype(x.dtype, arguments.output.dtype);
    const Plan plan = make(residual.check(x, out, name), out);
    affine_inputs.check(plan, x, name);
    std::vector<TensorInfo> results{plan.result()};
    results.resize(1 + columns.size(), {"", DType::float64, plan.row_shape(arguments.keepdim)});
    if (arguments.save_sum) results.push_back(plan.result());
    return results;
  };
  const auto run_tensor = [&](OpenedTensor& tensor, const InputName& name, Outputs&, Ranks& ranks) {
    const TensorInfo x = tensor.source->info();
    const DType out = output_dtype(x.dtype, arguments.output.dtype);
    const Plan plan = make(residual.check(x, out, name), out);
    const Affine& affine = affine_inputs.of(plan, x, name);
    const auto normalized = residual.add_to(std::move(tensor.source), out, work.threads);
    TensorSource& source = *normalized;
    std::vector<std::unique_ptr<RowWriter>> writers;
    std::vector<RowObserver*> observers;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      writers.push_back(std::make_unique<RowWriter>(outputs.sink(1 + i), plan, columns[i]));
      observers.push_back(writers.back().get());
    }
    std::optional<SumWriter> sum;
    if (arguments.save_sum) sum.emplace(outputs.sink(1 + columns.size()), plan, work.threads);
    TensorSink& sink = outputs.sink(0);
    const bool are_distributed =
        ranks.count() > 1 && (!sum || sum->takes_parts()) &&
        (plan.route.in_parts || std::all_of(observers.begin(), observers.end(),
                                            [](const auto* o) { return o->takes_parts(); }));
    log_plan(work, plan, source, &sink, kernel.name, are_distributed);
    ProgressLine progress(outputs.result().fills_terminal() ? When::never : work.progress,
                          source.info());
    const RunOptions options{work.threads, progress.callback(), &ranks};
    if (plan.route.in_parts) {
      run_long_rows(source, plan, kernel, affine, observers, sink, options, sum ? &*sum : nullptr);
    } else {
      const auto transform = [&](const RowsIn& rows, const RowsOut& y,
                                 const MeanAndRstd& statistics) {
        kernel.layer_norm(rows, y, affine, plan.formula, statistics);
      };
      if (sum) observers.push_back(&*sum);
      run(source, plan, transform, observers, &sink, options);
    }
    residual.finish();
  };
  const Inputs inputs = open_inputs(input.names, input.options);
  check_named(inputs);
  return for_each_tensor(
      inputs, outputs,
      {plan_tensor, run_tensor, input.keep_going, rows_in(input.rows, normalization.options.axes),
       work.ranks, Deal::by_size});
}

}  // namespace lnorm::app
