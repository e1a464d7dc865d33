#include "lnorm/pipeline/pairs.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/pattern.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"

namespace lnorm {

namespace {

// The patterns of a rule, and which of them have matched.
class Patterns {
 public:
  Patterns(std::string_view called, std::vector<std::string> patterns)
      : called_(called), patterns_(std::move(patterns)), seen_(patterns_.size()) {}

  struct Match {
    std::size_t pattern;
    Captures captures;
  };

  bool empty() const { return patterns_.empty(); }

  // The first of the patterns that match decides.
  std::optional<Match> first_match(std::string_view name) {
    std::optional<Match> found;
    for (std::size_t i = 0; i < patterns_.size(); ++i) {
      if (found && seen_[i]) continue;
      auto captures = match(patterns_[i], name);
      if (!captures) continue;
      seen_[i] = true;
      if (!found) found = Match{i, *std::move(captures)};
    }
    return found;
  }

  // Follows the last name: one that has matched none is a mistake. expected: the other side, if there is one.
  void check(const NamedTensors& actual, const NamedTensors* expected = nullptr) const {
    const auto unused = std::find(seen_.begin(), seen_.end(), false);
    if (unused == seen_.end()) return;
    const std::string& pattern = patterns_[static_cast<std::size_t>(unused - seen_.begin())];
    throw Error(concat(called_, ": '", printable(pattern), "' matches no tensor",
                       expected != nullptr ? ", neither of " : " of ", list_of(actual),
                       expected != nullptr ? concat(" nor of ", list_of(*expected)) : ""));
  }

 private:
  static std::string list_of(const NamedTensors& side) {
    const auto name = [&](std::size_t i) { return side.names[i]; };
    return concat(printable(side.file), " (", short_list(side.names.size(), name), ")");
  }

  std::string_view called_;
  std::vector<std::string> patterns_;
  std::vector<bool> seen_;
};

// What the rules leave of the tensors.
class Choice {
 public:
  explicit Choice(const PairingRules& rules)
      : only(rules.called.only, rules.only), skip(rules.called.skip, rules.skip) {}

  bool wants(std::string_view name) {
    const bool chosen = only.first_match(name).has_value();
    const bool skipped = skip.first_match(name).has_value();
    return (only.empty() || chosen) && !skipped;
  }

  Patterns only;
  Patterns skip;
};

template <class Rule>
std::vector<std::string> patterns_of(const std::vector<Rule>& rules) {
  std::vector<std::string> patterns;
  patterns.reserve(rules.size());
  for (const Rule& rule : rules) patterns.push_back(rule.pattern);
  return patterns;
}

NamedTensors renamed(const NamedTensors& tensors, const PairingRules& rules, Patterns& patterns) {
  NamedTensors result{tensors.file, {}};
  result.names.reserve(tensors.names.size());
  for (const std::string& name : tensors.names) {
    const auto found = patterns.first_match(name);
    if (!found) {
      result.names.push_back(name);
      continue;
    }
    const Renaming& renaming = rules.renamings[found->pattern];
    result.names.push_back(
        substitute(renaming.name, name, found->captures,
                   concat(rules.called.renaming, ' ', renaming.pattern, '=', renaming.name)));
  }
  return result;
}

// The number of each tensor by its name. side: "ACTUAL" or "EXPECTED".
std::unordered_map<std::string_view, std::size_t> numbers_of(const NamedTensors& renamed,
                                                             const NamedTensors& tensors,
                                                             std::string_view side) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (std::size_t i = 0; i < renamed.names.size(); ++i) {
    const auto [at, is_new] = numbers.emplace(renamed.names[i], i);
    if (is_new) continue;
    throw Error(concat(side, ' ', printable(renamed.file), ": both '",
                       short_name(tensors.names[at->second]), "' and '",
                       short_name(tensors.names[i]), "' get the name '",
                       short_name(renamed.names[i]), "', expected one"));
  }
  return numbers;
}

}  // namespace

std::vector<bool> chosen_by_name(const NamedTensors& tensors, const PairingRules& rules) {
  Choice choice(rules);
  std::vector<bool> are;
  are.reserve(tensors.names.size());
  for (const std::string& name : tensors.names) are.push_back(choice.wants(name));
  for (const Patterns* patterns : {&choice.only, &choice.skip}) patterns->check(tensors);
  return are;
}

Pairs pair_by_name(const NamedTensors& actual, const NamedTensors& expected,
                   const PairingRules& rules) {
  Patterns renamings(rules.called.renaming, patterns_of(rules.renamings));
  const NamedTensors new_actual = renamed(actual, rules, renamings);
  const NamedTensors new_expected = renamed(expected, rules, renamings);
  renamings.check(actual, &expected);

  Choice choice(rules);
  Patterns tolerances(rules.called.tolerance, patterns_of(rules.tolerances));
  const auto actual_numbers = numbers_of(new_actual, actual, "ACTUAL");
  const auto expected_numbers = numbers_of(new_expected, expected, "EXPECTED");
  Pairs result;
  for (std::size_t i = 0; i < new_expected.names.size(); ++i) {
    const std::string& name = new_expected.names[i];
    const auto tolerance = tolerances.first_match(name);
    if (!choice.wants(name)) continue;
    const auto found = actual_numbers.find(name);
    if (found == actual_numbers.end()) {
      result.expected_only.push_back(name);
      continue;
    }
    result.pairs.push_back({name, found->second, i, {}});
    if (tolerance) result.pairs.back().tolerance = tolerance->pattern;
  }
  for (const std::string& name : new_actual.names) {
    if (expected_numbers.contains(name)) continue;
    tolerances.first_match(name);
    if (choice.wants(name)) result.actual_only.push_back(name);
  }
  for (const Patterns* patterns : {&choice.only, &choice.skip, &tolerances}) {
    patterns->check(new_actual, &new_expected);
  }
  return result;
}

}  // namespace lnorm
