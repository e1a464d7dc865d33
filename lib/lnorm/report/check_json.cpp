#include <algorithm>
#include <string>

#include "lnorm/core/tensor_info.hpp"
#include "lnorm/report/check_words.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/junit.hpp"
#include "lnorm/report/record.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm {

namespace {

Record record_of(const FormulaFit& fit) {
  return {{"id", fit.id},           {"words", fit.words},
          {"options", fit.options}, {"explained", fit.explained},
          {"sqnr", fit.sqnr},       {"same_as", fit.same_as}};
}

// The figures of one tensor.
Record record_of(const Check& check) {
  const JudgedRows& judged = check.judged;
  const Diagnosis& diagnosis = check.diagnosis;
  std::vector<Record> explanations;
  for (const FormulaFit& fit : diagnosis.explanations) explanations.push_back(record_of(fit));
  const auto failures = check.comparison ? check.comparison->failures() : std::vector<Failure>();
  std::vector<Record> failed;
  failed.reserve(failures.size());
  for (const auto& [criterion, found] : failures) {
    failed.push_back({{"criterion", criterion}, {"found", found}});
  }
  const auto if_judged = [&](double ratio) {
    return check.verdict != Verdict::not_judged ? Value(ratio) : Value();
  };
  return {{"verdict", check.verdict},
          {"input", check.x},
          {"output", check.actual},
          {"arithmetic", check.arithmetic},
          {"elements", judged.elements},
          {"correctly_rounded", judged.correctly_rounded},
          {"beyond_rounding", judged.beyond},
          {"scaled_rows", judged.scaled_rows},
          {"worst_ratio", if_judged(judged.tree.ratio)},
          {"worst_ratio_loop", if_judged(judged.loop.ratio)},
          {"worst_index", judged.tree.ratio == 0 ? Value() : index_of(check, judged.tree)},
          {"as_loop", check.as_loop()},
          {"explained_by",
           diagnosis.explains_all() ? Value(diagnosis.explanations.front().id) : Value()},
          {"closer_to", diagnosis.hidden ? Value(diagnosis.hidden->id) : Value()},
          {"explanations", std::move(explanations)},
          {"where", check.where},
          {"affected_rows", check.rows},
          {"affected_columns", check.columns},
          {"unjudged_rows", judged.unjudged_rows},
          {"non_finite", judged.non_finite},
          {"failed", std::move(failed)},
          {"tolerance", check.comparison ? Value(record_of(check.comparison->criteria)) : Absent()},
          {"left_out", check.has_mask ? Value(check.left_out()) : Absent()},
          {"comparison", if_any(check.details)},
          {"slice", if_any(check.slice)}};
}

}  // namespace

void write_json(const Check& check, ByteSink& bytes) {
  Record report = record_of(check);
  report.insert(report.begin(), {"agrees", check.agrees()});
  write_json("check", report, bytes);
}

void write_json(const std::vector<NamedCheck>& checks, ByteSink& bytes) {
  const auto agrees = [](const NamedCheck& tensor) { return tensor.check.agrees(); };
  const auto worst = std::ranges::max_element(
      checks, {}, [](const NamedCheck& tensor) { return tensor.check.verdict; });
  JsonList list("check", {}, "tensors", bytes);
  for (const NamedCheck& tensor : checks) {
    Record line = record_of(tensor.check);
    line.insert(line.begin(), {"name", tensor.name});
    list.add(line);
  }
  list.finish({{"agrees", std::ranges::all_of(checks, agrees)},
               {"verdict", worst == checks.end() ? Value() : Value(worst->check.verdict)}});
}

void write_junit(const std::vector<NamedCheck>& checks, ByteSink& bytes) {
  std::vector<JunitCase> cases;
  for (const NamedCheck& tensor : checks) {
    const Check& c = tensor.check;
    JunitCase& one = cases.emplace_back(JunitCase{tensor.name});
    if (c.verdict == Verdict::not_judged) {
      one.skipped = verdict_sentence(c);
    } else if (!c.agrees()) {
      const std::string cause = cause_of(c);
      one.failure = cause.empty() ? verdict_sentence(c) : concat(tensor.name, " differs: ", cause);
      one.lines = explanation_lines(c);
      for (const std::string& line : c.where) one.lines.push_back("where: " + line);
      if (c.comparison && !c.comparison->equal()) {
        one.lines.push_back(concat(
            "criteria fail: ", failures_text(c.comparison->criteria, c.comparison->failures())));
      }
    }
  }
  write_junit("check", "differs", cases, bytes);
}

}  // namespace lnorm
