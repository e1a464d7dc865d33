#include <algorithm>
#include <string>

#include "lnorm/core/tensor_info.hpp"
#include "lnorm/report/check_words.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/json_value.hpp"
#include "lnorm/report/junit.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm {

namespace {

Json fit_json(const FormulaFit& fit) {
  return {{"id", fit.id},
          {"words", fit.words},
          {"options", fit.options},
          {"explained", fit.explained},
          {"sqnr", json_value(fit.sqnr)},
          {"same_as", fit.same_as}};
}

// The keys of one tensor.
Json tensor_json(const Check& check) {
  const JudgedRows& judged = check.judged;
  const Diagnosis& diagnosis = check.diagnosis;
  Json explanations = Json::array();
  for (const FormulaFit& fit : diagnosis.explanations) explanations.push_back(fit_json(fit));
  Json failed = Json::array();
  if (check.comparison) {
    for (const auto& [criterion, found] : check.comparison->failures()) {
      failed.push_back({{"criterion", name(criterion)}, {"found", json_value(found)}});
    }
  }
  const bool is_judged = check.verdict != Verdict::not_judged;
  Json result{
      {"verdict", name(check.verdict)},
      {"input", json_value(check.x)},
      {"output", json_value(check.actual)},
      {"arithmetic", name(check.arithmetic)},
      {"elements", judged.elements},
      {"correctly_rounded", judged.correctly_rounded},
      {"beyond_rounding", judged.beyond},
      {"scaled_rows", judged.scaled_rows},
      {"worst_ratio", is_judged ? Json(json_value(judged.tree.ratio)) : Json()},
      {"worst_ratio_loop", is_judged ? Json(json_value(judged.loop.ratio)) : Json()},
      {"worst_index", judged.tree.ratio == 0 ? Json() : Json(index_of(check, judged.tree))},
      {"as_loop", check.as_loop()},
      {"explained_by", diagnosis.explains_all() ? Json(diagnosis.explanations.front().id) : Json()},
      {"closer_to", diagnosis.hidden ? Json(diagnosis.hidden->id) : Json()},
      {"explanations", std::move(explanations)},
      {"where", check.where},
      {"affected_rows", json_value(check.rows)},
      {"affected_columns", json_value(check.columns)},
      {"unjudged_rows", judged.unjudged_rows},
      {"non_finite", judged.non_finite},
      {"failed", std::move(failed)}};
  if (check.has_mask) result["left_out"] = check.left_out();
  if (check.details) result["comparison"] = comparison_object(*check.details);
  if (check.slice) result["slice"] = json_value(*check.slice);
  return result;
}

}  // namespace

void write_json(const Check& check, ByteSink& bytes) {
  Json report{{"schema", 1}, {"command", "check"}, {"agrees", check.agrees()}};
  report.update(tensor_json(check));
  bytes.write(json_text(report) + '\n');
}

void write_json(const std::vector<NamedCheck>& checks, ByteSink& bytes) {
  const auto agrees = [](const NamedCheck& tensor) { return tensor.check.agrees(); };
  const auto worst = std::ranges::max_element(
      checks, {}, [](const NamedCheck& tensor) { return tensor.check.verdict; });
  JsonList list({{"schema", 1}, {"command", "check"}}, "tensors", bytes);
  for (const NamedCheck& tensor : checks) {
    Json json{{"name", tensor.name}};
    json.update(tensor_json(tensor.check));
    list.add(json);
  }
  list.finish({{"agrees", std::ranges::all_of(checks, agrees)},
               {"verdict", worst == checks.end() ? Json() : Json(name(worst->check.verdict))}});
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
