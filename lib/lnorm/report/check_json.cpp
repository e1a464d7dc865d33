#include <algorithm>
#include <string>

#include "lnorm/core/tensor_info.hpp"
#include "lnorm/report/check_words.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/json_value.hpp"
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
  Json result{
      {"verdict", name(check.verdict)},
      {"input", json_value(check.x)},
      {"output", json_value(check.actual)},
      {"arithmetic", name(check.arithmetic)},
      {"elements", judged.elements},
      {"correctly_rounded", judged.correctly_rounded},
      {"beyond_rounding", judged.beyond},
      {"worst_ratio", json_value(judged.tree.ratio)},
      {"worst_ratio_loop", json_value(judged.loop.ratio)},
      {"worst_index", judged.tree.ratio == 0 ? Json() : Json(index_of(check, judged.tree))},
      {"depth", json_value(check.depth())},
      {"explained_by", diagnosis.explains_all() ? Json(diagnosis.explanations.front().id) : Json()},
      {"closer_to", diagnosis.closer_to ? Json(*diagnosis.closer_to) : Json()},
      {"explanations", std::move(explanations)},
      {"where", check.where},
      {"affected_rows", json_value(check.rows)},
      {"affected_columns", json_value(check.columns)},
      {"unjudged_rows", judged.unjudged_rows},
      {"non_finite", judged.non_finite},
      {"failed", std::move(failed)}};
  if (check.slice) result["slice"] = json_value(*check.slice);
  return result;
}

bool agree(const std::vector<NamedCheck>& checks) {
  return std::all_of(checks.begin(), checks.end(),
                     [](const NamedCheck& tensor) { return tensor.check.agrees(); });
}

}  // namespace

void write_json(const Check& check, ByteSink& bytes) {
  Json report{{"schema", 1}, {"command", "check"}, {"agrees", check.agrees()}};
  report.update(tensor_json(check));
  bytes.write(json_text(report) + '\n');
}

void write_json(const std::vector<NamedCheck>& checks, ByteSink& bytes) {
  const auto worst = std::max_element(
      checks.begin(), checks.end(),
      [](const NamedCheck& a, const NamedCheck& b) { return a.check.verdict < b.check.verdict; });
  JsonList list({{"schema", 1}, {"command", "check"}}, "tensors", bytes);
  for (const NamedCheck& tensor : checks) {
    Json json{{"name", tensor.name}};
    json.update(tensor_json(tensor.check));
    list.add(json);
  }
  list.finish({{"agrees", agree(checks)},
               {"verdict", worst == checks.end() ? Json() : Json(name(worst->check.verdict))}});
}

void write_junit(const std::vector<NamedCheck>& checks, ByteSink& bytes) {
  const auto count = [&](bool (*is_one)(const Check&)) {
    return std::count_if(checks.begin(), checks.end(),
                         [&](const NamedCheck& tensor) { return is_one(tensor.check); });
  };
  const auto skipped = count([](const Check& c) { return c.verdict == Verdict::not_judged; });
  const auto failed =
      count([](const Check& c) { return c.verdict != Verdict::not_judged && !c.agrees(); });
  const std::string numbers = concat(R"( name="lnorm check" tests=")", checks.size(),
                                     R"(" failures=")", failed, R"(" errors="0" time="0")");
  bytes.write(concat(R"(<?xml version="1.0" encoding="UTF-8"?>)", "\n<testsuites", numbers,
                     ">\n  <testsuite", numbers, R"( skipped=")", skipped, "\">\n"));
  for (const NamedCheck& tensor : checks) {
    const Check& c = tensor.check;
    bytes.write(concat(R"(    <testcase name=")", escaped(tensor.name),
                       R"(" classname="lnorm.check" time="0">)"));
    const std::string sentence = escaped(verdict_sentence(c));
    if (c.verdict == Verdict::not_judged) {
      bytes.write(concat(R"(<skipped message=")", sentence, R"("/>)"));
    } else if (!c.agrees()) {
      std::string text = sentence;
      for (const std::string& line : explanation_lines(c)) text += '\n' + escaped(line);
      for (const std::string& line : c.where) text += "\nwhere: " + escaped(line);
      if (c.comparison && !c.comparison->equal()) {
        text += "\ncriteria fail: " +
                escaped(failures_text(c.comparison->criteria, c.comparison->failures()));
      }
      bytes.write(
          concat(R"(<failure message=")", sentence, R"(" type="differs">)", text, "</failure>"));
    }
    bytes.write("</testcase>\n");
  }
  bytes.write("  </testsuite>\n</testsuites>\n");
}

}  // namespace lnorm
