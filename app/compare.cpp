#include "lnorm/pipeline/compare.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "companions.hpp"
#include "compare_sets.hpp"
#include "judging.hpp"
#include "lnorm/core/axes.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/compared_rows.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/report/page/sections.hpp"
#include "print_error.hpp"
#include "report_output.hpp"
#include "tensor_work.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

class TwoTensors {
 public:
  TwoTensors(const Arguments& arguments, ListLimits limits)
      : arguments_(arguments), limits_(limits), companions_(arguments) {}

  // own: the tolerance of their name; null if there is none.
  Comparison compare(TensorSource& actual, TensorSource& expected, const InputName& name,
                     const ToleranceOfNames* own, const RunOptions& options) {
    std::optional<Axes> row_axes;
    if (arguments_.axes) row_axes = resolve_axes(actual.info(), *arguments_.axes);
    const auto compared = [&](TensorSource& source, const std::optional<double>& baseline) {
      Comparison result = comparer_.compare(
          actual, source,
          criteria_of(arguments_, own, actual.info().dtype, expected.info().dtype, baseline),
          limits_, options, row_axes, mask_of(actual.info(), expected.info(), name));
      // A tensor without elements is equal to another.
      const bool has_any = element_count(whole_of(actual.info()).shape) > 0;
      const bool has_choice = result.left_out > 0 || (actual.info().slice && has_any);
      if (has_choice && result.compared() == 0) {
        throw Error(concat(result.left_out > 0 ? "--mask" : "--rows", " leaves no elements of ",
                           printable(actual.info().name), ", expected some to compare"));
      }
      return result;
    };
    if (!companions_.has(TensorRole::baseline)) return compared(expected, std::nullopt);
    std::unique_ptr<TensorSource> spool;
    if (!expected.has_random_access()) spool = spooled(expected);
    TensorSource& again = spool ? *spool : expected;
    return compared(again, bound_of_baseline(again, name, options));
  }

 private:
  // Tensors of different shapes are not compared.
  std::shared_ptr<const Mask> mask_of(const TensorInfo& actual, const TensorInfo& expected,
                                      const InputName& name) {
    return actual.shape == expected.shape ? companions_.mask(actual, name) : nullptr;
  }

  // What no element of ACTUAL may exceed.
  double bound_of_baseline(TensorSource& expected, const InputName& name,
                           const RunOptions& options) {
    const TensorInfo& x = expected.info();
    // Whoever tells of the pair names it.
    companions_.check({TensorRole::baseline}, x, {name.name, name.title, name.captures});
    const auto other = companions_.open(TensorRole::baseline, x);
    LentSource lent(expected);
    const Comparison found =
        comparer_.compare(*other, lent, {}, {0, 0}, {options.threads, {}, options.ranks},
                          std::nullopt, mask_of(x, x, name));
    companions_.finish();
    return arguments_.factor * found.greatest(WorstBy::abs).value_or(0);
  }

  const Arguments& arguments_;
  ListLimits limits_;
  Comparer comparer_;
  Companions companions_;
};

// Whether there is a report with all that is known.
bool has_json(const Arguments& arguments) {
  return arguments.report == Report::json || arguments.save_json;
}

std::size_t mismatches_listed(const Arguments& arguments) {
  return arguments.max_diffs.value_or(arguments.report == Report::json ? 5 : 0);
}

std::int64_t block_elements(const Arguments& arguments, const TensorInfo& info) {
  const Axes last = info.shape.empty() ? Axes{} : Axes{info.shape.size() - 1};
  return RowLayout(info.shape, arguments.axes ? resolve_axes(info, *arguments.axes) : last)
      .block_elements();
}

Comparison compare_files(const Arguments& arguments, const Selected& first,
                         const Selected& second) {
  const WorkArguments& work = arguments.work;
  const auto [actual, expected] = open_pair(arguments, first, second);
  const auto uses_temporary_file = [](const TensorSource& source) {
    return make_c_order_plan(source.info()).uses_temporary_file(source.has_random_access());
  };
  const bool is_spooled = uses_temporary_file(*actual) || uses_temporary_file(*expected);
  if (work.verbose) {
    const int threads = executor_for_comparison(actual->info(), work.threads).threads();
    const bool are_distributed = !arguments.page.is_wanted() && !is_spooled &&
                                 actual->has_random_access() && expected->has_random_access();
    print_note(
        concat("in blocks of ", block_elements(arguments, actual->info()), " elements, ",
               counted(threads, "thread"), ranks_text(work, are_distributed),
               is_spooled ? ", by way of a temporary file: an input is in Fortran order" : ""));
  }
  const TensorInfo& info = expected->info();
  const auto as = [&](std::size_t i) { return arguments.input.reading(i).as; };
  const bool is_used = actual->info().dtype == as(0);
  if (arguments.input.as.size() == 2) check_as(as(0), actual->info());
  if (arguments.input.as.size() == 2 || !is_used) check_as(as(1), info);
  ProgressLine progress(work.progress, info);
  const std::size_t max_diffs = mismatches_listed(arguments);
  ListLimits limits{max_diffs, arguments.worst.value_or(5),
                    arguments.by.value_or(WorstBy::row_ulp)};
  limits.rows = arguments.rows_out.has_value();
  // Which text lists only if asked to.
  if (arguments.page.is_wanted() || has_json(arguments)) {
    limits.mismatches = arguments.max_diffs.value_or(5);
  }
  if (arguments.page.is_wanted()) limits.map.emplace();
  return TwoTensors(arguments, limits)
      .compare(*actual, *expected, {second.name, second.title, second.captures}, nullptr,
               {work.threads, progress.callback(), work.ranks});
}

// There are many of them.
constexpr ErrorMap::Size kSmallMap{.grid_rows = 40, .grid_columns = 64, .bands = 100};

// Whether an option asks for it, if only one tensor is there.
bool pairs_by_name(const Arguments& arguments) {
  const PairingRules& rules = arguments.pairing;
  return arguments.common || !rules.only.empty() || !rules.skip.empty() ||
         !rules.renamings.empty() || !rules.tolerances.empty();
}

// For options that say how several tensors are compared.
void refuse_options_of_sets(const Arguments& arguments) {
  const PairingRules& rules = arguments.pairing;
  const std::string_view option = arguments.common            ? "--common"
                                  : arguments.all             ? "--all"
                                  : !rules.only.empty()       ? "--only"
                                  : !rules.skip.empty()       ? "--skip"
                                  : !rules.renamings.empty()  ? "--rename"
                                  : !rules.tolerances.empty() ? "--tolerance"
                                                              : "";
  if (option.empty()) return;
  throw Error(concat(option, " has no effect: there is one tensor on each side"),
              rules.tolerances.empty() ? "" : "for one tensor it is --rtol and --atol");
}

// For options that ask for more of a tensor than its line has.
void refuse_options_of_details(const Arguments& arguments) {
  if (has_json(arguments) || arguments.quiet || arguments.page.is_wanted()) return;
  const std::string_view option = arguments.max_diffs ? "--max-diffs"
                                  : arguments.worst   ? "--worst"
                                  : arguments.axes    ? "the choice of axes"
                                                      : "";
  if (option.empty()) return;
  throw Error(concat(option, " has no effect: several tensors have a line each"),
              "--json has it for every tensor; FILE:NAME compares one");
}

// Prints a comparison of two tensors or of two sets. of_set: what write_text takes of sets alone.
template <class AnyComparison, class... OfSet>
void print(const Arguments& arguments, const AnyComparison& comparison, const OfSet&... of_set) {
  print_report(arguments, [&](ByteSink& out) {
    write_report(arguments.report, std::tie(comparison), out, of_set..., arguments.histogram,
                 report_style(arguments));
  });
}

constexpr std::string_view kCommand = "lnorm compare";

// The sections of the pairs that differ most; as SetComparison::worst sees it.
class PairSections {
 public:
  // After this the pair has no error map, which would take memory.
  void add(std::size_t number, PairComparison& pair) {
    Comparison& comparison = *pair.comparison;
    const bool is_equal = comparison.equal() && comparison.non_finite_one_side == 0 &&
                          comparison.greatest(WorstBy::ulp).value_or(0) == 0;
    if (!is_equal) {  // or there is nothing to see
      std::vector<double> rank{comparison.equal() ? 0.0 : 1.0,
                               static_cast<double>(comparison.non_finite_one_side),
                               comparison.greatest(WorstBy::ulp).value_or(0)};
      sections_.add(number, std::move(rank), [&] {
        return page::comparison_section(concat("pair-", number), pair.name, comparison);
      });
    }
    comparison.error_map.reset();
  }

  std::vector<page::Section> take(const SetComparison& set) {
    std::vector<page::Section> parts{
        page::set_comparison_section(set, sections_.ids(set.pairs.size()))};
    for (page::Section& section : sections_.take()) parts.push_back(std::move(section));
    return parts;
  }

 private:
  OutlierSections sections_{kMaxSections};
};

int compare_single(const Arguments& arguments, const Selection& actual, const Selection& expected) {
  refuse_options_of_sets(arguments);
  const bool is_first = arguments.work.ranks->is_first();
  std::optional<PageOutput> output;
  if (arguments.page.is_wanted() && is_first) output.emplace("--page", arguments.page);
  Comparison comparison = compare_files(arguments, only_tensor(actual), only_tensor(expected));
  if (!is_first) return 0;
  save_report(arguments.rows_out, [&](ByteSink& out) { write_rows_csv(comparison, out); });
  if (output) {
    output->write(concat(comparison.actual.name, " and ", comparison.expected.name), kCommand,
                  {page::comparison_section("comparison", "", comparison)});
  }
  save_reports(arguments, comparison);
  std::vector<ElementPair>& first = comparison.first_mismatches;
  first.resize(std::min(first.size(), mismatches_listed(arguments)));
  print(arguments, comparison);
  return comparison.equal() ? 0 : 1;
}

int compare_several(const Arguments& arguments, const Selection& actual,
                    const Selection& expected) {
  refuse_options_of_details(arguments);
  if (arguments.rows_out) {
    throw Error("--rows-out has no effect: there are several tensors", "FILE:NAME compares one");
  }
  ListLimits limits{0, 0, arguments.by.value_or(WorstBy::row_ulp)};
  if (has_json(arguments) || arguments.page.is_wanted()) {
    limits.mismatches = arguments.max_diffs.value_or(5);
    limits.worst = arguments.worst.value_or(5);
  }
  const bool is_first = arguments.work.ranks->is_first();
  std::optional<PageOutput> output;
  PairSections sections;
  if (arguments.page.is_wanted()) {
    if (is_first) output.emplace("--page", arguments.page);
    limits.map = kSmallMap;
  }
  TwoTensors two(arguments, limits);
  const SetComparison set = compare_sets(
      arguments, actual, expected,
      [&](TensorSource& a, TensorSource& b, const InputName& name, const ToleranceOfNames* own,
          const RunOptions& options) { return two.compare(a, b, name, own, options); },
      [&](std::size_t number, PairComparison& pair) {
        if (output) sections.add(number, pair);
      });
  if (!is_first) return 0;
  if (output) {
    output->write(
        concat(title_of(arguments.input.names[0]), " and ", title_of(arguments.input.names[1])),
        kCommand, sections.take(set));
  }
  save_reports(arguments, set);
  print(arguments, set, advice_after(arguments, actual, expected, set), arguments.all);
  return set.unreadable() > 0 ? 2 : set.equal() ? 0 : 1;
}

}  // namespace

int compare(const Arguments& arguments) {
  if (arguments.by && arguments.worst == std::size_t{0}) {
    throw Error(
        "--by says what the worst are, and --worst 0 that none is limits, expected one of them");
  }
  check_streams(arguments);
  const auto reading_of = [&](std::size_t position) {
    ReadOptions reading = arguments.input.reading(position);
    // Of one file that is named twice, --as may be another.
    if (!arguments.input.as.empty()) reading.files = nullptr;
    reading.in_parallel = in_parallel(arguments.work.threads);
    return reading;
  };
  const auto select = [&](std::size_t position) {
    return select_tensors(arguments.input.names[position], reading_of(position), Role::input);
  };
  const Selection actual = select(0);
  const std::string& word = arguments.input.names[1];
  const bool stands_for_names = has_placeholder(word) && !os::status(word);
  const Selection expected =
      stands_for_names ? partners_of(actual, word, reading_of(1)) : select(1);
  const auto is_single = [](const Selection& selection) {
    return !selection.several && selection.tensors.size() == 1;
  };
  const auto has_name = [](const Selection& selection) {
    const Selected& tensor = selection.tensors.front();
    return selection.is_file && !tensor.set->tensor_name(tensor.index).empty();
  };
  const bool is_single_pair = is_single(actual) && is_single(expected) &&
                              !(pairs_by_name(arguments) && has_name(actual) && has_name(expected));
  return is_single_pair ? compare_single(arguments, actual, expected)
                        : compare_several(arguments, actual, expected);
}

}  // namespace lnorm::app
