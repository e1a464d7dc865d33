#include "lnorm/measure/where.hpp"

#include <algorithm>
#include <cstddef>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// Longer lists say less than their first number.
constexpr std::int64_t kFewNumbers = 5;

// Numbers that follow each other.
struct Run {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// All runs of a set; there may be as many as half of its numbers.
struct Runs {
  explicit Runs(const NumberSet& set) {
    for (std::int64_t one = set.numbers.next(0); one >= 0; one = set.numbers.next(one + 1)) {
      if (count > 0 && one == last.first + last.count) {
        ++last.count;
        continue;
      }
      add(one);
    }
    if (count == 1) first = last;
    // The last run may be cut off by the end.
    const bool is_cut = last.first + last.count == set.limit && last.count < first.count;
    is_periodic = is_periodic && count >= 3 && (is_cut || last.count == first.count) &&
                  last.first + step >= set.limit;
  }

  std::int64_t count = 0;
  Run first;
  Run last;
  std::int64_t step = 0;    // from the first to the second
  bool is_periodic = true;  // runs of the same length stand at the same distance

 private:
  void add(std::int64_t number) {
    if (count == 1) {
      first = last;
      step = number - first.first;
    }
    is_periodic =
        is_periodic && (count < 2 || (number - last.first == step && last.count == first.count));
    last = {number, 1};
    ++count;
  }
};

std::string ordinal(std::int64_t n) {
  const std::int64_t tens = n % 100;
  const std::int64_t ones = n % 10;
  const bool is_teen = tens >= 11 && tens <= 13;
  return concat(n, is_teen || ones > 3 || ones == 0 ? "th"
                   : ones == 1                      ? "st"
                   : ones == 2                      ? "nd"
                                                    : "rd");
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
  AffectedNumbers result{set.numbers.count(), set.numbers.numbers(0, 10)};
  for (std::int64_t& number : result.first) number += set.base;
  return result;
}

std::string words_of(const NumberSet& set, std::string_view noun) {
  const std::int64_t count = set.numbers.count();
  if (count == 0) return concat("no ", noun);
  const Runs runs(set);
  if (runs.count == 1 && (count > 2 || set.limit == count)) {
    return words_of_run(runs.first, set, noun);
  }
  const std::string from = concat(" from ", name_of(runs.first.first, set));
  if (runs.is_periodic) {
    if (runs.first.count == 1) return concat("every ", ordinal(runs.step), ' ', noun, from, " on");
    return concat("blocks of ", runs.first.count, ' ', noun, "s, every ", runs.step, from, " on");
  }
  if (count <= kFewNumbers) return words_of_list(set.numbers.numbers(0, count), set, noun);
  // All but a few.
  const std::int64_t missing = set.limit - count;
  if (missing <= kFewNumbers && missing < count) {
    std::vector<std::int64_t> others;
    for (std::int64_t i = 0; i < set.limit; ++i) {
      if (!set.numbers.contains(i)) others.push_back(i);
    }
    return concat("all ", set.limit, ' ', noun, "s but ", words_of_list(others, set, noun));
  }
  return concat(count, " of ", set.limit, ' ', noun, "s,", from, " to ",
                name_of(runs.last.first + runs.last.count - 1, set));
}

std::string words_of(std::int64_t elements, const NumberSet& rows, const NumberSet& columns) {
  const bool all_rows = rows.numbers.count() == rows.limit;
  const bool all_columns = columns.numbers.count() == columns.limit;
  const bool is_full = elements == rows.numbers.count() * columns.numbers.count();
  if (is_full && all_rows && all_columns) return "every element";
  if (is_full && all_columns) return words_of(rows, "row");
  if (is_full && all_rows) return words_of(columns, "column") + " in all rows";
  const std::string in_rows = all_rows ? "all rows" : words_of(rows, "row");
  const std::string in_columns = all_columns ? "all columns" : words_of(columns, "column");
  if (is_full) return concat(in_columns, " of ", in_rows);
  return concat(counted(elements, "element"), ", in ", in_rows, ", ", in_columns);
}

}  // namespace lnorm
