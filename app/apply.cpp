#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "affine_inputs.hpp"
#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/long_rows.hpp"
#include "lnorm/pipeline/row_writer.hpp"
#include "lnorm/pipeline/run.hpp"
#include "open_input.hpp"
#include "output_file.hpp"
#include "progress_line.hpp"

namespace lnorm::app {

namespace {

Format stats_format(const std::string& path, const ByteSink& bytes) {
  const Format format = named_format(path).value_or(Format::npy);
  if (is_binary(format) && bytes.is_terminal()) {
    throw Error(concat(printable(path), ": binary is not written to a terminal"),
                "name a file, or one that ends in .json or .txt");
  }
  return format;
}

// Rows of no elements cost the input nothing and could be any number.
void check_stats_rows(const Plan& plan, const std::string& name) {
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  if (plan.wants_mean_and_rstd && plan.row_length == 0 && plan.rows > kMost) {
    throw Error(concat(printable(name), ": --save-mean and --save-rstd of ", plan.rows,
                       " rows of no elements, expected at most ", kMost));
  }
}

// The files that the arguments name: of the result, then of mean and rstd.
using Files = std::vector<std::unique_ptr<OutputFile>>;

Files open_files(const ApplyArguments& arguments) {
  Files files;
  files.push_back(std::make_unique<OutputFile>(arguments.output.path));
  for (const auto& path : {arguments.save_mean, arguments.save_rstd}) {
    if (path) files.push_back(std::make_unique<OutputFile>(*path));
  }
  check_destinations(files);
  if (files.size() > 1) files.front()->bytes().outlive_reader();
  return files;
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
  Inputs inputs(arguments.input);
  AffineInputs affine_inputs(normalization, arguments.input.options.as);
  Files files;
  while (const std::optional<OpenedTensor> input = inputs.next()) {
    Plan plan = make_plan(input->source->info(), normalization.options, output.dtype);
    plan.wants_mean_and_rstd = arguments.save_mean || arguments.save_rstd;
    check_stats_rows(plan, input->source->info().name);
    const Affine& affine = affine_inputs.of(plan, *input);

    if (files.empty()) files = open_files(arguments);
    OutputFile& result = *files.front();
    result.begin(output, *input, plan);
    std::vector<std::unique_ptr<RowWriter>> writers;
    std::vector<RowObserver*> observers;
    const auto save = [&](const std::optional<std::string>& path, const std::string& name,
                          std::span<const double> RowBlock::*column) {
      if (!path) return;
      OutputFile& file = *files[1 + writers.size()];
      file.begin(*input, stats_format(*path, file.bytes()),
                 {*path, DType::float64, plan.row_shape(arguments.keepdim)}, name, output);
      writers.push_back(std::make_unique<RowWriter>(file.sink(), plan, column));
      observers.push_back(writers.back().get());
    };
    save(arguments.save_mean, "mean", &RowBlock::mean);
    save(arguments.save_rstd, "rstd", &RowBlock::rstd);

    const auto transform = [&](const RowsIn& x, const RowsOut& y, const RowStats& stats) {
      kernel.layer_norm(x, y, affine, plan.formula, stats);
    };
    ProgressLine progress(result.fills_terminal() ? When::never : arguments.progress,
                          input->source->info());
    const RunOptions options{arguments.threads, progress.callback()};
    if (plan.route.in_parts) {
      run_long_rows(*input->source, plan, kernel, affine, observers, result.sink(), options);
    } else {
      run(*input->source, plan, transform, observers, &result.sink(), options);
    }
    for (const auto& file : files) file->end();
  }
  if (files.empty()) files = open_files(arguments);
  for (const auto& file : files) file->finish();
  std::for_each(files.rbegin(), files.rend(), [](const auto& file) { file->commit(); });
  return 0;
}

}  // namespace lnorm::app
