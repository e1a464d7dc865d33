#include "lnorm/measure/where.hpp"

#include <algorithm>
#include <cstddef>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// Longer lists say less than their first number.
constexpr std::size_t kFewNumbers = 5;

// Numbers that follow each other.
struct Run {
  std::int64_t first;
  std::int64_t count;
};

std::vector<Run> runs_of(const std::vector<std::int64_t>& numbers) {
  std::vector<Run> runs;
  for (const std::int64_t number : numbers) {
    if (!runs.empty() && number == runs.back().first + runs.back().count) {
      ++runs.back().count;
    } else {
      runs.push_back({number, 1});
    }
  }
  return runs;
}

std::string ordinal(std::int64_t n) {
  const std::int64_t tens = n % 100;
  const std::int64_t ones = n % 10;
  const bool is_teen = tens >= 11 && tens <= 13;
  return concat(n, is_teen || ones > 3 || ones == 0 ? "th"
                   : ones == 1                      ? "st"
                   : ones == 2                      ? "nd"
                                                    : "rd");
}

// Whether runs of the same length stand at the same distance; the last one may be cut off by the end.
bool are_periodic(const std::vector<Run>& runs, std::int64_t limit) {
  if (runs.size() < 3) return false;
  const std::int64_t step = runs[1].first - runs[0].first;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i > 0 && runs[i].first - runs[i - 1].first != step) return false;
    const bool is_cut = i + 1 == runs.size() && runs[i].first + runs[i].count == limit;
    if (runs[i].count != runs[0].count && !(is_cut && runs[i].count < runs[0].count)) return false;
  }
  return runs.back().first + step >= limit;
}

std::string name_of(std::int64_t number, const NumberSet& set) {
  return row_name(number + set.base, set.shape);
}

std::string words_of_list(const std::vector<std::int64_t>& numbers, const NumberSet& set,
                          std::string_view noun) {
  std::vector<std::string> names;
  names.reserve(numbers.size());
  for (const std::int64_t number : numbers) names.push_back(name_of(number, set));
  return concat(noun, numbers.size() > 1 ? "s " : " ", listed(names, " and "));
}

std::string words_of_run(const Run& run, const NumberSet& set, std::string_view noun) {
  const std::int64_t limit = set.limit;
  const std::int64_t end = run.first + run.count;
  if (run.count == limit)
    return limit == 1 ? concat("the one ", noun) : concat("all ", limit, ' ', noun, 's');
  if (end == limit) {
    return concat("every ", noun, " from ", name_of(run.first, set), " on, the last ", run.count);
  }
  if (run.first == 0) return concat("the first ", run.count, ' ', noun, 's');
  return concat(noun, "s ", name_of(run.first, set), " to ", name_of(end - 1, set));
}

}  // namespace

AffectedNumbers affected(const NumberSet& set) {
  const auto listed = std::min<std::ptrdiff_t>(10, std::ssize(set.numbers));
  AffectedNumbers result{std::ssize(set.numbers),
                         {set.numbers.begin(), set.numbers.begin() + listed}};
  for (std::int64_t& number : result.first) number += set.base;
  return result;
}

std::string words_of(const NumberSet& set, std::string_view noun) {
  const std::vector<std::int64_t>& numbers = set.numbers;
  if (numbers.empty()) return concat("no ", noun);
  const std::vector<Run> runs = runs_of(numbers);
  if (runs.size() == 1 && (numbers.size() > 2 || set.limit == runs[0].count)) {
    return words_of_run(runs[0], set, noun);
  }
  if (are_periodic(runs, set.limit)) {
    const std::int64_t step = runs[1].first - runs[0].first;
    if (runs[0].count == 1) {
      return concat("every ", ordinal(step), ' ', noun, " from ", name_of(runs[0].first, set),
                    " on");
    }
    return concat("blocks of ", runs[0].count, ' ', noun, "s, every ", step, " from ",
                  name_of(runs[0].first, set), " on");
  }
  if (numbers.size() <= kFewNumbers) return words_of_list(numbers, set, noun);
  // All but a few.
  const std::int64_t missing = set.limit - std::ssize(numbers);
  if (missing <= static_cast<std::int64_t>(kFewNumbers) && missing < std::ssize(numbers)) {
    std::vector<std::int64_t> others;
    for (std::int64_t i = 0; i < set.limit; ++i) {
      if (!std::binary_search(numbers.begin(), numbers.end(), i)) others.push_back(i);
    }
    return concat("all ", set.limit, ' ', noun, "s but ", words_of_list(others, set, noun));
  }
  return concat(numbers.size(), " of ", set.limit, ' ', noun, "s, from ",
                name_of(numbers.front(), set), " to ", name_of(numbers.back(), set));
}

std::string words_of(std::int64_t elements, const NumberSet& rows, const NumberSet& columns) {
  const bool all_rows = std::ssize(rows.numbers) == rows.limit;
  const bool all_columns = std::ssize(columns.numbers) == columns.limit;
  const bool is_full = elements == std::ssize(rows.numbers) * std::ssize(columns.numbers);
  if (is_full && all_rows && all_columns) return "every element";
  if (is_full && all_columns) return words_of(rows, "row");
  if (is_full && all_rows) return words_of(columns, "column") + " in all rows";
  const std::string in_rows = all_rows ? "all rows" : words_of(rows, "row");
  const std::string in_columns = all_columns ? "all columns" : words_of(columns, "column");
  if (is_full) return concat(in_columns, " of ", in_rows);
  return concat(counted(elements, "element"), ", in ", in_rows, ", ", in_columns);
}

}  // namespace lnorm
