#include "lnorm/pipeline/compare.hpp"

#include "commands.hpp"
#include "complain.hpp"
#include "each_tensor.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/report/comparison_report.hpp"
#include "progress_line.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

Tolerance tolerance_of(const CompareArguments& arguments, DType actual, DType expected) {
  const bool bounds = arguments.rtol || arguments.atol;
  const bool any = bounds || arguments.max_ulp;  // takes the place of the defaults
  Tolerance tolerance = any ? Tolerance{} : default_tolerance(actual, expected);
  if (bounds) {
    tolerance.rtol = arguments.rtol.value_or(0);
    tolerance.atol = arguments.atol.value_or(0);
  }
  tolerance.max_ulp = arguments.max_ulp;
  tolerance.ulp_alone = any && !bounds;
  tolerance.equal_nan = arguments.equal_nan;
  return tolerance;
}

Comparison compare_files(const CompareArguments& arguments) {
  const WorkArguments& work = arguments.work;
  const ReadOptions reading{.from = {}, .as = arguments.as};
  bool detour = false;
  const auto open = [&](const std::string& name) {
    auto source = open_tensor(name, reading).source;
    detour = detour || make_c_order_plan(source->info()).makes_detour(source->has_positions());
    return source;
  };
  const auto actual = open(arguments.actual);
  const auto expected = open(arguments.expected);
  if (work.verbose) {
    const int threads = crew_of_comparison(actual->info(), work.threads).threads();
    tell(concat("in blocks of ", kComparedElements, " elements, ", counted(threads, "thread"),
                detour ? ", by way of a temporary file: an input is in Fortran order" : ""));
  }
  const TensorInfo& info = expected->info();
  if (actual->info().dtype != arguments.as) check_as(arguments.as, info);
  const Tolerance tolerance = tolerance_of(arguments, actual->info().dtype, info.dtype);
  std::optional<Axes> row_axes;
  if (arguments.axes) row_axes = resolve_axes(actual->info(), *arguments.axes);
  ProgressLine progress(work.progress, info);
  const std::size_t max_diffs = arguments.max_diffs.value_or(arguments.json ? 5 : 0);
  return compare(*actual, *expected, tolerance,
                 {max_diffs, arguments.worst, arguments.by.value_or(WorstBy::ulp)},
                 {work.threads, progress.callback()}, row_axes);
}

}  // namespace

int compare(const CompareArguments& arguments) {
  if (is_standard_input(arguments.actual) && is_standard_input(arguments.expected)) {
    throw Error("standard input is named for two inputs, expected one");
  }
  if (arguments.by && arguments.worst == 0) {
    throw Error(
        "--by says what the worst are, and --worst 0 that none is listed, expected one of them");
  }
  const Comparison comparison = compare_files(arguments);
  if (!arguments.quiet) {
    ByteSink out("-");
    out.outlive_reader();  // the exit status is still to be told
    out.write(arguments.json ? comparison_json(comparison)
                             : comparison_text(comparison, output_style(arguments.color)));
    out.finish();
    out.commit();
  }
  return comparison.equal() ? 0 : 1;
}

}  // namespace lnorm::app
