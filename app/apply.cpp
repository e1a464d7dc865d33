#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "affine_inputs.hpp"
#include "commands.hpp"
#include "each_tensor.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/long_rows.hpp"
#include "lnorm/pipeline/row_writer.hpp"
#include "lnorm/pipeline/run.hpp"
#include "progress_line.hpp"
#include "tell_route.hpp"

namespace lnorm::app {

namespace {

// Of a file of mean or rstd.
Format row_number_format(const std::string& path, const ByteSink& bytes) {
  const Format format = format_of_extension(path).value_or(Format::npy);
  if (is_binary(format) && bytes.is_terminal()) {
    throw Error(concat(printable(path), ": binary is not written to a terminal"),
                "name a file, or one that ends in .json or .txt");
  }
  return format;
}

// Rows of no elements cost the input nothing and could be any number.
void check_row_numbers(const Plan& plan, const std::string& name) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (plan.wants_mean_and_rstd && plan.row_length == 0 && plan.rows > kMost) {
    throw Error(concat(printable(name), ": --save-mean and --save-rstd of ", plan.rows,
                       " rows of no elements, expected at most ", kMost));
  }
}

}  // namespace

int apply(const ApplyArguments& arguments) {
  const NormalizationArguments& normalization = arguments.normalization;
  const OutputArguments& output = arguments.output;
  check_inputs(arguments.input, normalization);
  if (normalization.options.formula.rms && arguments.save_mean) {
    throw Error("--rms subtracts no mean, so that there is none for --save-mean");
  }
  const Kernel& kernel = find_kernel(normalization.kernel);
  AffineInputs affine_inputs(normalization, arguments.input.options.as);
  std::vector<OutputName> names{{"-o", output.path}};
  if (arguments.save_mean) names.push_back({"--save-mean", *arguments.save_mean});
  if (arguments.save_rstd) names.push_back({"--save-rstd", *arguments.save_rstd});
  return for_each_tensor(arguments.input, names, [&](OpenedTensor& input, Outputs& outputs) {
    TensorSource& source = *input.source;
    Plan plan = make_plan(source.info(), normalization.options, output.dtype);
    plan.wants_mean_and_rstd = names.size() > 1;
    check_row_numbers(plan, source.info().name);
    const Affine& affine = affine_inputs.of(plan, input);
    affine_inputs.check_as(source.info());

    OutputFile& result = outputs[0];
    result.begin(output, input, plan);
    std::vector<std::unique_ptr<RowWriter>> writers;
    std::vector<RowObserver*> observers;
    const auto save = [&](const std::optional<std::string>& path, const std::string& name,
                          std::span<const double> RowBlock::*column) {
      if (!path) return;
      OutputFile& file = outputs[1 + writers.size()];
      file.begin(input, row_number_format(*path, file.bytes()),
                 {*path, DType::float64, plan.row_shape(arguments.keepdim)}, name, output);
      writers.push_back(std::make_unique<RowWriter>(file.sink(), plan, column));
      observers.push_back(writers.back().get());
    };
    save(arguments.save_mean, "mean", &RowBlock::mean);
    save(arguments.save_rstd, "rstd", &RowBlock::rstd);
    outputs.check_effects(output);

    const WorkArguments& work = arguments.work;
    tell_route(work, plan, source, &result.sink(), kernel.name);
    ProgressLine progress(result.fills_terminal() ? When::never : work.progress, source.info());
    const RunOptions options{work.threads, progress.callback()};
    if (plan.route.in_parts) {
      run_long_rows(source, plan, kernel, affine, observers, result.sink(), options);
    } else {
      const auto transform = [&](const RowsIn& x, const RowsOut& y, const MeanAndRstd& statistics) {
        kernel.layer_norm(x, y, affine, plan.formula, statistics);
      };
      run(source, plan, transform, observers, &result.sink(), options);
    }
  });
}

}  // namespace lnorm::app
