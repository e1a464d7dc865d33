#include "compare_sets.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "each_tensor.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/raw_tensor.hpp"
#include "lnorm/pipeline/compare.hpp"
#include "lnorm/pipeline/ranks.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/numbers.hpp"
#include "option_value.hpp"
#include "print_error.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

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
class Places {
 public:
  explicit Places(const Selection& selection) : selection_(selection) {
    for (const Selected& tensor : selection.tensors) {
      numbers_.emplace(tensor.set.get(), numbers_.size());
      is_pipe_ = is_pipe_ || tensor.set->is_pipe();
    }
  }

  std::pair<std::size_t, std::int64_t> of(std::size_t tensor) const {
    const Selected& selected = selection_.tensors[tensor];
    return {numbers_.at(selected.set.get()), selected.set->place(selected.index)};
  }
  bool is_pipe() const { return is_pipe_; }

 private:
  const Selection& selection_;
  std::map<const TensorSet*, std::size_t> numbers_;
  bool is_pipe_ = false;
};

// The order in which pairs are read: that of the pipe if there is one, else of the expected file.
std::vector<std::size_t> reading_order(const std::vector<Pair>& pairs, const Selection& actual,
                                       const Selection& expected) {
  const Places actual_places(actual);
  const Places expected_places(expected);
  const auto actual_place = [&](std::size_t pair) { return actual_places.of(pairs[pair].actual); };
  const auto expected_place = [&](std::size_t pair) {
    return expected_places.of(pairs[pair].expected);
  };
  const auto by = [](const auto& place) {
    return [&place](std::size_t a, std::size_t b) { return place(a) < place(b); };
  };
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!actual_places.is_pipe()) {
    std::sort(order.begin(), order.end(), by(expected_place));
    return order;
  }
  std::sort(order.begin(), order.end(), by(actual_place));
  if (expected_places.is_pipe() &&
      !std::is_sorted(order.begin(), order.end(), by(expected_place))) {
    throw Error(concat(printable(actual.name), " and ", printable(expected.name),
                       " are pipes with their tensors in different orders, expected one of them "
                       "as a file"));
  }
  return order;
}

// How far all pairs are, each of which counts the same.
class ProgressOfPairs {
 public:
  ProgressOfPairs(When when, const std::string& name, std::size_t pairs)
      : line_(when, {name, {}, {static_cast<std::int64_t>(pairs) * kSteps}}) {}

  // The progress of one pair. Pairs are numbered in the order in which they are read.
  Progress of(std::size_t number, const TensorInfo& tensor) {
    const Progress show = line_.callback();
    if (!show) return {};
    const auto before = static_cast<std::int64_t>(number) * kSteps;
    const auto all = static_cast<double>(std::max<std::int64_t>(1, element_count(tensor.shape)));
    return [=](std::int64_t elements) {
      const double share = static_cast<double>(elements) / all;
      show(before + static_cast<std::int64_t>(share * kSteps));
    };
  }

 private:
  static constexpr std::int64_t kSteps = 1000;
  ProgressLine line_;
};

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

// What must be known of pairs, in the order in which they are read, to deal them.
struct PairSizes {
  std::vector<std::int64_t> bytes;   // of the expected tensor
  std::vector<bool> are_unreadable;  // which opening the pair tells more of
};

PairSizes sizes_of(const std::vector<Pair>& pairs, const std::vector<std::size_t>& order,
                   const Selection& actual, const Selection& expected, const Ranks& ranks) {
  PairSizes sizes{std::vector<std::int64_t>(order.size()), std::vector<bool>(order.size())};
  if (ranks.count() == 1) return sizes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Selected& a = actual.tensors[pairs[order[i]].actual];
    const Selected& b = expected.tensors[pairs[order[i]].expected];
    try {
      a.set->info(a.index);
      sizes.bytes[i] = data_bytes(b.set->info(b.index));
    } catch (const Error&) {
      sizes.are_unreadable[i] = true;
    }
  }
  return sizes;
}

// What every rank must see alike: the pairs and their sizes.
std::vector<std::string> identities_of(const std::vector<Pair>& pairs,
                                       const std::vector<std::size_t>& order,
                                       const PairSizes& sizes) {
  std::vector<std::string> identities;
  identities.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    identities.push_back(concat(pairs[order[i]].name, " of ",
                                sizes.are_unreadable[i] ? "no" : std::to_string(sizes.bytes[i]),
                                " bytes"));
  }
  return identities;
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

}  // namespace

NamedTensors named(const Selection& selection) {
  NamedTensors tensors{selection.name, {}};
  tensors.names.reserve(selection.tensors.size());
  for (const Selected& tensor : selection.tensors) tensors.names.push_back(tensor.title);
  return tensors;
}

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

OpenedPair open_pair(const Arguments& arguments, const Selected& actual, const Selected& expected) {
  OpenedPair pair{open_tensor(actual).source, open_tensor(expected).source};
  if (!arguments.input.rows || pair.actual->info().shape != pair.expected->info().shape)
    return pair;
  const NormalizedAxes axes = arguments.axes.value_or(AxisList{{-1}});
  const ChooseRows choose = rows_in(arguments.input.rows, axes);
  pair.actual = chosen(choose, std::move(pair.actual));
  pair.expected = chosen(choose, std::move(pair.expected));
  return pair;
}

SetComparison compare_sets(const Arguments& arguments, const Selection& actual,
                           const Selection& expected, const CompareTwo& compare_two,
                           const SeePair& see) {
  check_partner(actual, expected);
  check_partner(expected, actual);
  const Pairs pairs = pair_by_name(named(actual), named(expected), arguments.pairing);
  SetComparison result = set_of(arguments, actual, expected, pairs);
  ProgressOfPairs progress(arguments.work.progress, expected.name, pairs.pairs.size());
  const std::vector<std::size_t> order = reading_order(pairs.pairs, actual, expected);
  Ranks& all = *arguments.work.ranks;
  const PairSizes sizes = sizes_of(pairs.pairs, order, actual, expected, all);
  check_same(all, concat(actual.name, " and ", expected.name),
             identities_of(pairs.pairs, order, sizes), "pair");
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
      compared.comparison =
          compare_two(*left, *right, {pair.name, pair.name, b.captures, true}, tolerance,
                      {arguments.work.threads, progress.of(i, right->info()), ranks});
      see(number, compared);
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

std::string advice_after(const Arguments& arguments, const Selection& actual,
                         const Selection& expected, const SetComparison& set) {
  if (set.pairs.empty()) {
    const std::string renaming = renaming_that_pairs(arguments, actual, expected);
    return renaming.empty() ? "" : concat("hint: ", renaming, " pairs them");
  }
  const auto first = set.first();
  if (!first || is_standard_input(arguments.input.names[0]) ||
      is_standard_input(arguments.input.names[1])) {
    return "";
  }
  const PairComparison& pair = set.pairs[*first];
  const auto tensor_word = [](const Selection& side, const std::string& name) {
    const Selected& tensor = *std::ranges::find(side.tensors, name, &Selected::name);
    const bool is_named = !tensor.set->tensor_name(tensor.index).empty();
    return shell_word(is_named ? concat(tensor.set->name(), ':', name) : tensor.set->name());
  };
  std::string command =
      concat("details: lnorm compare ", tensor_word(actual, pair.actual), ' ',
             tensor_word(expected, pair.expected), criteria_options(*pair.comparison));
  for (const TensorRole role : {TensorRole::baseline, TensorRole::mask}) {
    const auto word = arguments.tensors.find(role);
    if (word == arguments.tensors.end()) continue;
    command += concat(' ', role_row(role).option, ' ', shell_word(word->second));
    if (role == TensorRole::baseline) command += " --factor " + value_text(arguments.factor);
  }
  if (arguments.input.rows) command += " --rows " + range_text(*arguments.input.rows);
  const auto add = [&](std::string_view option, const auto& values, auto word_of) {
    const std::string words = joined(values, ",", word_of);
    if (!words.empty()) command += concat(' ', option, ' ', words);
  };
  add("--from", arguments.input.from, [](Format format) { return format_row(format).name; });
  add("--as", arguments.input.as, [](DType as) { return name(as); });
  return command;
}

}  // namespace lnorm::app
