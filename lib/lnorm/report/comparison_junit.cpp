#include <algorithm>
#include <string>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/junit.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm {

namespace {

JunitCase case_of(const std::string& name, const Comparison& c) {
  JunitCase result{name};
  if (c.equal()) return result;
  if (!c.same_shape) {
    result.failure =
        concat("shape ", to_string(c.actual.shape), ", expected ", to_string(c.expected.shape));
    return result;
  }
  result.failure = concat("criteria fail: ", failures_text(c.criteria, c.failures()));
  result.lines.push_back(concat("mismatched: ", c.mismatched, " / ", c.compared()));
  if (c.absolute) {
    result.lines.push_back(
        concat("greatest absolute difference: ", rounded_text(c.absolute->value, 9)));
  }
  return result;
}

}  // namespace

void write_junit(const Comparison& comparison, ByteSink& bytes) {
  write_junit("compare", "differs", {case_of(comparison.actual.name, comparison)}, bytes);
}

void write_junit(const SetComparison& set, ByteSink& bytes) {
  std::vector<JunitCase> cases;
  for (const PairComparison& pair : set.pairs) {
    cases.push_back(pair.comparison ? case_of(pair.name, *pair.comparison)
                                    : JunitCase{.name = pair.name, .skipped = pair.error});
  }
  const auto add = [&](const std::vector<std::string>& names, const std::string& set_name) {
    for (const std::string& name : names) {
      JunitCase& one = cases.emplace_back(JunitCase{name});
      (set.common ? one.skipped : one.failure) = concat("only in ", set_name);
    }
  };
  add(set.actual_only, set.actual);
  add(set.expected_only, set.expected);
  write_junit("compare", "differs", cases, bytes);
}

}  // namespace lnorm
