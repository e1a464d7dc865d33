#include "lnorm/pipeline/compare.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "companions.hpp"
#include "each_tensor.hpp"
#include "judging.hpp"
#include "lnorm/core/axes.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/members.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/measure/set_comparison.hpp"
#include "lnorm/pipeline/compared_rows.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/ranks.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/page/sections.hpp"
#include "options.hpp"
#include "report_output.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

// Opens two tensors that are compared. Cuts both to the rows that the arguments ask for; keeps them whole where their shapes
// differ. Throws Error.
std::pair<std::unique_ptr<TensorSource>, std::unique_ptr<TensorSource>> open_pair(
    const Arguments& arguments, const Selected& first, const Selected& second) {
  auto actual = open_tensor(first).source;
  auto expected = open_tensor(second).source;
  if (arguments.input.rows && actual->info().shape == expected->info().shape) {
    const NormalizedAxes axes = arguments.axes.value_or(AxisList{{-1}});
    const ChooseRows choose = rows_in(arguments.input.rows, axes);
    actual = chosen(choose, std::move(actual));
    expected = chosen(choose, std::move(expected));
  }
  return {std::move(actual), std::move(expected)};
}

class TwoTensors {
 public:
  TwoTensors(const Arguments& arguments, ListLimits limits)
      : arguments_(arguments), limits_(limits), companions_(arguments) {}

  // own: the tolerance of their name; null if there is none.
  Comparison compare(TensorSource& actual, TensorSource& expected, const InputName& name,
                     const ToleranceOfNames* own, const RunOptions& options) {
    const std::optional<Axes> row_axes = this->row_axes(actual.info());
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
  std::optional<Axes> row_axes(const TensorInfo& x) const {
    return arguments_.axes ? std::optional(resolve_axes(x, *arguments_.axes)) : std::nullopt;
  }

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
    companions_.check({TensorRole::baseline}, x, name);
    const auto other = companions_.open(TensorRole::baseline, x);
    LentSource lent(expected);
    const Comparison found =
        comparer_.compare(*other, lent, {}, {0, 0}, {options.threads, {}, options.ranks},
                          row_axes(x), mask_of(x, x, name));
    companions_.finish();
    if (found.judged() > 0 && !found.absolute) {
      throw Error(concat("--baseline ", printable(found.actual.name),
                         ": has no finite number beside one, expected some"));
    }
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

// For options that say how several tensors are compared.
void refuse_options_of_sets(const Arguments& arguments) {
  const std::string_view option =
      arguments.first_of("--common --all --only --skip --rename --tolerance");
  if (option.empty()) return;
  throw Error(concat(option, " has no effect: there is one tensor on each side"),
              arguments.pairing.tolerances.empty() ? "" : "for one tensor it is --rtol and --atol");
}

// For options that ask for more of a tensor than its line has.
void refuse_options_of_details(const Arguments& arguments) {
  if (has_json(arguments) || arguments.quiet || arguments.page.is_wanted()) return;
  std::string_view option = arguments.first_of("--max-diffs --worst");
  if (option.empty() && arguments.axes) option = "the choice of axes";
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

// A tensor without a name, or one that is named, is compared with one tensor.
void check_partner(const Selection& selection, const Selection& other) {
  if (selection.several || selection.tensors.size() != 1) return;
  const Selected& tensor = selection.tensors.front();
  const bool is_nameless = tensor.set->tensor_name(tensor.index).empty();
  if (is_nameless || !selection.is_file) only_tensor(other);
}

// The option that pairs names which differ by a prefix alone; empty if there is none.
std::string renaming_that_pairs(const Arguments& arguments, const Selection& actual,
                                const Selection& expected) {
  const NamedTensors a = named(actual);
  const NamedTensors b = named(expected);
  if (!arguments.pairing.renamings.empty() || a.names.empty() || b.names.empty()) return "";
  // The name most like the first one says what the prefixes are.
  const std::string& first = b.names.front();
  std::string before_a;
  std::string before_b;
  std::size_t most = 0;
  for (const std::string& name : a.names) {
    const auto [in_name, in_first] =
        std::mismatch(name.rbegin(), name.rend(), first.rbegin(), first.rend());
    const auto length = static_cast<std::size_t>(in_name - name.rbegin());
    if (length <= most) continue;
    most = length;
    before_a.assign(name.begin(), in_name.base());
    before_b.assign(first.begin(), in_first.base());
  }
  // model.model.x and model.x: a rule for model. alone would take it from both.
  const std::string twice_a = before_a + before_a;
  const std::string twice_b = before_b + before_b;
  for (const auto& [from, to] :
       {std::pair(before_a, before_b), std::pair(before_b, before_a),
        std::pair(twice_a, before_b + before_a), std::pair(twice_b, before_a + before_b)}) {
    if (from.empty() || concat(from, to).find_first_of("*?[]{}=") != from.npos) continue;
    PairingRules rules = arguments.pairing;
    rules.renamings.push_back({from + '*', to + "{1}"});
    try {
      const std::size_t pairs = pair_by_name(a, b, rules).pairs.size();
      if (pairs < std::min(a.names.size(), b.names.size())) continue;
    } catch (const Error&) {  // two get one name
      continue;
    }
    return concat(rules.called.renaming, ' ', shell_word(concat(from, "*=", to, "{1}")));
  }
  return "";
}

[[noreturn]] void fail_empty(const Arguments& arguments, const Selection& actual,
                             const Selection& expected) {
  const std::string both = concat(printable(actual.name), " and ", printable(expected.name));
  if (actual.tensors.empty() && expected.tensors.empty()) {
    throw Error(concat(both, " have no tensors, expected some to compare"));
  }
  const PairingRules& rules = arguments.pairing;
  if (rules.only.empty() && rules.skip.empty()) {
    const std::string renaming = renaming_that_pairs(arguments, actual, expected);
    throw Error(concat(both, " have no name in common, expected some to compare"),
                !renaming.empty()         ? renaming
                : rules.renamings.empty() ? "--rename 'PATTERN=NEW' gives them other names"
                                          : "");
  }
  throw Error(concat(rules.only.empty()   ? "--skip leaves"
                     : rules.skip.empty() ? "--only leaves"
                                          : "--only and --skip leave",
                     " no tensor of ", both, " to compare"));
}

// Where tensors lie: first those of the set that is listed first.
std::vector<std::pair<std::size_t, std::int64_t>> places_of(const Selection& selection) {
  std::map<const TensorSet*, std::size_t> numbers;
  std::vector<std::pair<std::size_t, std::int64_t>> places;
  for (const Selected& tensor : selection.tensors) {
    const std::size_t number = numbers.emplace(tensor.set.get(), numbers.size()).first->second;
    places.emplace_back(number, tensor.set->place(tensor.index));
  }
  return places;
}

bool has_pipe(const Selection& selection) {
  return std::any_of(selection.tensors.begin(), selection.tensors.end(),
                     [](const Selected& tensor) { return tensor.set->is_pipe(); });
}

// The order in which pairs are read: that of the pipe if there is one, else of the expected file.
std::vector<std::size_t> reading_order(const std::vector<Pair>& pairs, const Selection& actual,
                                       const Selection& expected) {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool is_actual = has_pipe(actual);
  const auto by = [&](const auto& places, std::size_t Pair::*side) {
    return [&pairs, &places, side](std::size_t a, std::size_t b) {
      return places[pairs[a].*side] < places[pairs[b].*side];
    };
  };
  const auto first = places_of(is_actual ? actual : expected);
  std::sort(order.begin(), order.end(), by(first, is_actual ? &Pair::actual : &Pair::expected));
  if (!is_actual || !has_pipe(expected)) return order;
  const auto other = places_of(expected);
  if (std::is_sorted(order.begin(), order.end(), by(other, &Pair::expected))) return order;
  throw Error(concat(printable(actual.name), " and ", printable(expected.name),
                     " are pipes with their tensors in different orders, expected one of them "
                     "as a file"));
}

constexpr std::int64_t kSteps = 1000;  // of each pair: they count the same

// How far all pairs are, where one of them is under way. number: in the order in which they are read.
Progress progress_of_pair(const Progress& show, std::size_t number, const TensorInfo& tensor) {
  if (!show) return {};
  const auto before = static_cast<std::int64_t>(number) * kSteps;
  const auto all = static_cast<double>(std::max<std::int64_t>(1, element_count(tensor.shape)));
  return [=](std::int64_t elements) {
    const double share = static_cast<double>(elements) / all;
    show(before + static_cast<std::int64_t>(share * kSteps));
  };
}

void check_as_of_sets(std::optional<DType> as, const SetComparison& set) {
  const bool is_used =
      std::any_of(set.pairs.begin(), set.pairs.end(), [&](const PairComparison& pair) {
        return pair.comparison &&
               (pair.comparison->actual.dtype == *as || pair.comparison->expected.dtype == *as);
      });
  if (is_used) return;
  throw Error(concat("--as ", name(*as), " has no effect on ", printable(set.actual), " and ",
                     printable(set.expected)));
}

// The options that ask for the criteria of a comparison.
std::string criteria_options(const Comparison& comparison) {
  const Criteria& criteria = comparison.criteria;
  Criteria defaults;
  defaults.tolerance = default_tolerance(comparison.actual.dtype, comparison.expected.dtype);
  defaults.equal_nan = criteria.equal_nan;
  std::string options;
  if (criteria.tolerance && criteria != defaults) {
    options += concat(" --rtol ", value_text(criteria.tolerance->rtol), " --atol ",
                      value_text(criteria.tolerance->atol));
  }
  for (const CriterionRow& row : criterion_rows()) {
    std::string option(row.name);
    std::replace(option.begin(), option.end(), '_', '-');
    const std::string bound = bound_text(criteria, row);
    if (row.criterion == Criterion::baseline) continue;  // another tensor says it
    if (!bound.empty()) options += concat(" --", option, ' ', bound);
  }
  if (!criteria.equal_nan) options += " --no-equal-nan";
  return options;
}

// What several ranks must know of pairs, in the order in which they are read, to deal them.
struct PairSizes {
  std::vector<std::int64_t> bytes;      // of the expected tensor
  std::vector<bool> are_unreadable;     // which opening the pair tells more of
  std::vector<std::string> identities;  // which every rank must see alike
};

PairSizes sizes_of(const std::vector<Pair>& pairs, const std::vector<std::size_t>& order,
                   const Selection& actual, const Selection& expected, const Ranks& ranks) {
  PairSizes sizes{std::vector<std::int64_t>(order.size()), std::vector<bool>(order.size()), {}};
  if (ranks.count() == 1) return sizes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Pair& pair = pairs[order[i]];
    const Selected& a = actual.tensors[pair.actual];
    const Selected& b = expected.tensors[pair.expected];
    try {
      a.set->info(a.index);
      sizes.bytes[i] = data_bytes(b.set->info(b.index));
    } catch (const Error&) {
      sizes.are_unreadable[i] = true;
    }
    const std::string bytes = sizes.are_unreadable[i] ? "no" : std::to_string(sizes.bytes[i]);
    sizes.identities.push_back(concat(pair.name, " of ", bytes, " bytes"));
  }
  return sizes;
}

// The result before any pair is compared. Throws Error if there is nothing to compare.
SetComparison set_of(const Arguments& arguments, const Selection& actual, const Selection& expected,
                     const Pairs& pairs) {
  const bool has_names = !pairs.actual_only.empty() || !pairs.expected_only.empty();
  if (pairs.pairs.empty() && (arguments.common || !has_names)) {
    fail_empty(arguments, actual, expected);
  }
  if (arguments.work.verbose) {
    print_note(concat(counted(static_cast<long long>(pairs.pairs.size()), "pair"),
                      " one after another, in blocks of rows"));
  }
  return {.actual = actual.name,
          .expected = expected.name,
          .pairs = std::vector<PairComparison>(pairs.pairs.size()),
          .actual_only = pairs.actual_only,
          .expected_only = pairs.expected_only,
          .common = arguments.common,
          .by = arguments.by.value_or(WorstBy::row_ulp)};
}

// A comparison, and the number of its pair.
struct NumberedComparison {
  std::size_t number = 0;
  Comparison comparison;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(number, comparison);
  }
};

// EXPECTED with {} or {1} in its word: for each tensor of ACTUAL the one that its name stands for, called as that is.
Selection partners_of(const Selection& actual, const std::string& word,
                      const ReadOptions& reading) {
  TensorFinder finder(reading, Role::input);
  Selection partners;
  partners.several = actual.several;
  for (const Selected& tensor : actual.tensors) {
    Selected found = finder.find(substitute(word, tensor.name, tensor.captures, "EXPECTED"));
    found.title = tensor.title;
    found.captures = tensor.captures;
    auto& sets = partners.sets;
    if (std::find(sets.begin(), sets.end(), found.set) == sets.end()) sets.push_back(found.set);
    partners.tensors.push_back(std::move(found));
  }
  partners.name = partners.sets.empty() ? word : partners.sets.front()->name();
  return partners;
}

// Pairs the tensors by name and compares them one after another. A pair that cannot be read is told of, and the
// others are compared, if the arguments say so. Throws Error, also if there is nothing to compare. Of several ranks the
// first gets the result. sections: null if there is no page.
SetComparison compare_sets(const Arguments& arguments, const Selection& actual,
                           const Selection& expected, TwoTensors two, PairSections* sections) {
  check_partner(actual, expected);
  check_partner(expected, actual);
  const Pairs pairs = pair_by_name(named(actual), named(expected), arguments.pairing);
  SetComparison result = set_of(arguments, actual, expected, pairs);
  const auto steps = static_cast<std::int64_t>(pairs.pairs.size()) * kSteps;
  ProgressLine line(arguments.work.progress, {expected.name, {}, {steps}});
  const Progress progress = line.callback();
  const std::vector<std::size_t> order = reading_order(pairs.pairs, actual, expected);
  Ranks& all = *arguments.work.ranks;
  const PairSizes sizes = sizes_of(pairs.pairs, order, actual, expected, all);
  check_same(all, concat(actual.name, " and ", expected.name), sizes.identities, "pair");
  // Error maps stay in the rank that makes them.
  const WorkDistribution distribution(
      all, arguments.page.path.empty() ? Deal::by_size : Deal::together, sizes.bytes);
  std::vector<NumberedComparison> distributed;  // those of this rank, unless it is the first
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t number = order[i];
    const Pair& pair = pairs.pairs[number];
    const Selected& a = actual.tensors[pair.actual];
    const Selected& b = expected.tensors[pair.expected];
    PairComparison& compared = result.pairs[number];
    compared = {pair.name, a.name, b.name, {}, {}};
    // All ranks tell what none can read, and rank 0 is heard.
    Ranks* const ranks = sizes.are_unreadable[i] ? &all : distribution.ranks_of(i);
    if (ranks == nullptr) continue;
    try {
      const auto [left, right] = open_pair(arguments, a, b);
      const ToleranceOfNames* const tolerance =
          pair.tolerance ? &arguments.pairing.tolerances[*pair.tolerance] : nullptr;
      compared.comparison = two.compare(
          *left, *right, {pair.name, pair.name, b.captures, true}, tolerance,
          {arguments.work.threads, progress_of_pair(progress, i, right->info()), ranks});
      if (sections != nullptr) sections->add(number, compared);
    } catch (const Error& error) {
      // What one rank alone may have found is no matter of this pair: the others do not know of it.
      const bool is_known = all.count() == 1 || sizes.are_unreadable[i];
      const bool has_others = order.size() > 1 && is_known;
      if (!arguments.input.keep_going && has_others) throw with_way_on(error);
      if (!arguments.input.keep_going || !is_known) throw;
      print_error(error);
      compared.error = error.what();
    }
    if (ranks != &all && !all.is_first()) distributed.push_back({number, *compared.comparison});
  }
  actual.finish();
  expected.finish();
  gather(all, distributed);
  if (!all.is_first()) return result;
  for (NumberedComparison& of_pair : distributed) {
    result.pairs[of_pair.number].comparison = std::move(of_pair.comparison);
  }
  if (arguments.input.options.as) check_as_of_sets(arguments.input.options.as, result);
  return result;
}

// What to do next, for the end of the report: the command that shows more of the first pair that differs; or, of sets
// without a common name, the option that pairs them. Empty if there is nothing.
std::string advice_after(const Arguments& arguments, const Selection& actual,
                         const Selection& expected, const SetComparison& set) {
  if (set.pairs.empty()) {
    const std::string renaming = renaming_that_pairs(arguments, actual, expected);
    return renaming.empty() ? "" : concat("hint: ", renaming, " pairs them");
  }
  const auto first = set.first();
  if (!first) return "";
  const PairComparison& pair = set.pairs[*first];
  const auto selected = [](const Selection& side, const std::string& name) -> const Selected& {
    return *std::ranges::find(side.tensors, name, &Selected::name);
  };
  // Standard input is read once, and what is in memory has no file.
  const auto can_be_named = [](const Selected& tensor) {
    const std::string& name = tensor.set->name();
    return os::status(name) || (is_json_literal(name) && !name.ends_with(kCutLiteral));
  };
  if (!can_be_named(selected(actual, pair.actual)) ||
      !can_be_named(selected(expected, pair.expected))) {
    return "";
  }
  const auto tensor_word = [&](const Selection& side, const std::string& name) {
    const Selected& tensor = selected(side, name);
    const bool is_named = !tensor.set->tensor_name(tensor.index).empty();
    return shell_word(is_named ? concat(tensor.set->name(), ':', name) : tensor.set->name());
  };
  std::string command =
      concat("details: lnorm compare ", tensor_word(actual, pair.actual), ' ',
             tensor_word(expected, pair.expected), criteria_options(*pair.comparison));
  for (const TensorRole role : {TensorRole::baseline, TensorRole::mask}) {
    const auto word = arguments.tensors.find(role);
    if (word == arguments.tensors.end()) continue;
    const std::string_view option = role_row(role).option;
    // {} is the name of the pair here, which the tensors have not if they were renamed.
    const bool is_file = os::status(word->second).has_value();
    command += concat(
        ' ', option, ' ',
        shell_word(is_file ? word->second
                           : substitute(word->second, pair.name,
                                        selected(expected, pair.expected).captures, option)));
    if (role == TensorRole::baseline) command += " --factor " + value_text(arguments.factor);
  }
  if (arguments.by) command += concat(" --by ", name(*arguments.by));
  if (arguments.input.rows) command += " --rows " + range_text(*arguments.input.rows);
  const auto add = [&](std::string_view option, const auto& values, auto word_of) {
    const std::string words = joined(values, ",", word_of);
    if (!words.empty()) command += concat(' ', option, ' ', words);
  };
  add("--from", arguments.input.from, [](Format format) { return format_row(format).name; });
  add("--as", arguments.input.as, [](DType as) { return name(as); });
  return command;
}

int compare_single(const Arguments& arguments, const Selection& actual, const Selection& expected) {
  refuse_options_of_sets(arguments);
  const bool is_first = arguments.work.ranks->is_first();
  std::optional<PageOutput> output;
  if (arguments.page.is_wanted() && is_first) output.emplace("--page", arguments.page);
  Comparison comparison = compare_files(arguments, only_tensor(actual), only_tensor(expected));
  if (!is_first) return 0;
  save_report("--rows-out", arguments.rows_out, [&](ByteSink& out) {
    write_rows_csv(comparison, in_parallel(arguments.work.threads), out);
  });
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
  const SetComparison set = compare_sets(arguments, actual, expected, TwoTensors(arguments, limits),
                                         output ? &sections : nullptr);
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
  const bool pairs_by_name =
      !arguments.first_of("--common --only --skip --rename --tolerance").empty();
  const bool is_single_pair = is_single(actual) && is_single(expected) &&
                              !(pairs_by_name && has_name(actual) && has_name(expected));
  return is_single_pair ? compare_single(arguments, actual, expected)
                        : compare_several(arguments, actual, expected);
}

}  // namespace lnorm::app
