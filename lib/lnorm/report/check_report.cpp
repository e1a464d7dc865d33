#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/record.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm {

namespace {

// Where the worst element is, in the whole tensor.
Shape worst_index(const Check& check, const WorstRatio& worst) {
  const std::int64_t first = check.slice ? check.slice->first : 0;
  return index_in_file(check.actual, check.axes, first + worst.row, worst.element);
}

// On the side of 1 where the ratio is.
std::string ratio_text(double ratio) {
  int digits = 3;
  while (digits < 17 && ratio != 1 && rounded_text(ratio, digits) == "1") ++digits;
  return rounded_text(ratio, digits);
}

std::string unjudged_text(const Check& check) {
  // A gradient may leave the range of its dtype though x is finite.
  const std::string_view what = check.part.empty() ? "x" : "the exact result";
  const JudgedRows& judged = check.judged;
  // A sum over rows is one tensor.
  const bool is_sum = check.part == "dweight" || check.part == "dbias";
  return concat(
      is_sum ? "all elements" : concat(judged.unjudged_rows, " of ", counted(judged.rows, "row")),
      judged.not_finite_rows == 0 ? concat(": rounding in ", name(check.arithmetic),
                                           " may be as large as they are, or leaves its range")
      : judged.not_finite_rows == judged.unjudged_rows
          ? concat(": ", what, " is not finite there")
          : concat(", in ", judged.not_finite_rows, " of which ", what, " is not finite"));
}

// Requires criteria.
std::string criteria_line(const Check& check, const Style& style) {
  const Comparison& comparison = *check.comparison;
  if (!comparison.equal()) {
    return concat(style.bad("criteria fail: "),
                  failures_text(comparison.criteria, comparison.failures()));
  }
  return concat(style.good("criteria hold: "), criteria_text(comparison.criteria));
}

// Options of lnorm that give the same, in one line.
std::string options_of(const FormulaFit& fit) { return joined(fit.options, " "); }

// "12.3% of the elements", or "every element".
std::string share_text(const FormulaFit& fit) {
  if (fit.explained == 1) return "every element";
  std::string share = fixed_text(100 * fit.explained, 1);
  if (share == "100.0") share = "99.9";
  return share + "% of the elements";
}

// "WORDS (IDS; OPTIONS)".
std::string cause_text(const FormulaFit& fit) {
  const std::string options = options_of(fit);
  return concat(fit.words, " (", fit.id(), options.empty() ? "" : "; ", options, ")");
}

// What explains all of an output that differs; null where nothing does.
const FormulaFit* cause_of(const Check& check) {
  const Diagnosis& diagnosis = check.diagnosis;
  const bool is_known = check.verdict == Verdict::differs && diagnosis.explains_all();
  return is_known ? &diagnosis.explanations.front() : nullptr;
}

// Null if there is none.
Value value_of(const FormulaFit* fit) {
  if (fit == nullptr) return {};
  return Record{{"ids", fit->ids},         {"words", fit->words},
                {"options", fit->options}, {"explained", fit->explained},
                {"sqnr", fit->sqnr},       {"alike", fit->same_as}};
}

Value value_of(const std::optional<EstimatedNumber>& estimate) {
  if (!estimate) return {};
  return Record{{"number", estimate->number}, {"error", estimate->error}};
}

Value value_of(const StatisticEstimates& estimates) {
  return Record{{"mean_factor", value_of(estimates.mean_factor)},
                {"variance_factor", value_of(estimates.variance_factor)},
                {"eps", value_of(estimates.eps)},
                {"mean_square_factor", value_of(estimates.mean_square_factor)}};
}

// "the mean used is 0.78 mean; the variance used is var + 0.28 mean^2". Empty: a cause says as much itself, or the rows do not tell.
std::string shown_by(const StatisticEstimates& estimates, bool has_cause) {
  const auto plain = [](const std::optional<EstimatedNumber>& one) {
    return one ? one->plain : std::nullopt;
  };
  const auto times = [](double factor, std::string_view what) {
    return factor == 1 ? std::string(what) : concat(shortest_text(factor, 0), ' ', what);
  };
  const auto mean = plain(estimates.mean_factor);
  const auto factor = plain(estimates.variance_factor);
  const auto square = plain(estimates.mean_square_factor);
  const auto eps = plain(estimates.eps);
  if (!estimates.is_sure || (has_cause && !square)) return "";
  std::vector<std::string> said;
  if (mean)
    said.push_back(*mean == 0 ? "no mean is used" : "the mean used is " + times(*mean, "mean"));
  if (factor || square) {
    said.push_back(concat(
        "the variance used is ", times(factor.value_or(1), "var"),
        square ? concat(*square < 0 ? " - " : " + ", times(std::fabs(*square), "mean^2")) : ""));
  }
  if (eps) said.push_back("the eps used is " + shortest_text(*eps, 0));
  return joined(said, "; ");
}

// The figures of one tensor.
Record record_of(const Check& check) {
  const JudgedRows& judged = check.judged;
  const Diagnosis& diagnosis = check.diagnosis;
  const FormulaFit* const cause = cause_of(check);
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
          {"measured_ratio", judged.loop.ratio > 0 ? if_judged(judged.loop.ratio) : Value()},
          {"worst_index", judged.tree.ratio == 0 ? Value() : worst_index(check, judged.tree)},
          {"as_loop", check.as_loop()},
          {"cause", value_of(cause)},
          {"warning", value_of(diagnosis.hidden ? &*diagnosis.hidden : nullptr)},
          {"most_like",
           value_of(check.verdict == Verdict::differs && cause == nullptr ? diagnosis.most_like()
                                                                          : nullptr)},
          {"estimates", value_of(diagnosis.estimates)},
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

std::string verdict_sentence(const Check& check) {
  const std::string norm = concat(check.part, check.part.empty() ? "" : " of ",
                                  check.formula.norm().name, " of ", printable(check.x.name));
  switch (check.verdict) {
    case Verdict::correctly_rounded:
      return concat("correctly rounded, every element is that of ", norm);
    case Verdict::within_rounding:
      return concat("within rounding of ", norm, check.as_loop() ? ", as a loop's" : "");
    case Verdict::differs:
      return concat("differs from ", norm);
    case Verdict::not_judged:
      return check.left_out() > 0 && check.judged.elements == 0
                 ? "cannot be judged: the mask leaves no elements"
             : check.judged.elements == 0 ? "cannot be judged: it has no elements"
                                          : concat("cannot be judged in ", name(check.arithmetic));
  }
  return "";
}

std::vector<std::pair<std::string, std::string>> figure_words(const Check& c) {
  const JudgedRows& judged = c.judged;
  const bool is_judged = c.verdict != Verdict::not_judged;
  const std::string rows = counted(judged.rows, "row");
  const auto share = [&](std::int64_t count) {
    return concat(count, " / ", judged.elements, " (", percentage_text(count, judged.elements),
                  ")");
  };
  std::vector<std::pair<std::string, std::string>> found;
  if (is_judged) {
    const std::int64_t left_out = c.left_out();
    found.emplace_back(
        "correctly rounded",
        concat(share(judged.correctly_rounded),
               left_out == 0 ? "" : concat(", ", left_out, " left out by the mask")));
    if (judged.beyond > 0) {
      found.emplace_back("beyond rounding",
                         concat(share(judged.beyond), ", in ", c.rows.count, " of ", rows));
    }
    if (judged.non_finite > 0) {
      found.emplace_back("not finite where a number is expected",
                         std::to_string(judged.non_finite));
    }
    if (judged.scaled_rows > 0 && judged.beyond == 0) {
      found.emplace_back("scale off by more than rounding explains",
                         concat(judged.scaled_rows, " of ", rows, ", most of all row ",
                                row_name(judged.scale.row + (c.slice ? c.slice->first : 0),
                                         row_shape(c.actual.shape, c.axes)),
                                ": ", factor_text(judged.scale.actual), " times the exact one"));
    }
  }
  const WorstRatio& tree = judged.tree;
  if (is_judged && tree.ratio > 0) {
    found.emplace_back(
        "worst element",
        concat(ratio_text(tree.ratio), tree.ratio > 1 ? " times" : " of", " what rounding in ",
               name(c.arithmetic), " explains, at ", to_string(worst_index(c, tree)), ": ",
               value_text(Number{tree.actual}, c.is_quantized ? DType::float32 : c.actual.dtype),
               ", exact ",
               c.actual.dtype == DType::float64 ? value_text(Number{tree.exact}, DType::float64)
                                                : rounded_text(tree.exact, 9)));
  }
  if (is_judged && tree.ratio > 1 && judged.loop.ratio > 1 && std::isfinite(judged.loop.ratio)) {
    found.emplace_back("", concat("a plain loop explains at most ",
                                  rounded_text(1 / judged.loop.ratio, 2), " of that"));
  } else if (c.verdict == Verdict::within_rounding && c.as_loop()) {
    found.emplace_back("", concat("it is ", ratio_text(judged.loop.ratio),
                                  " of what a plain loop and rounding explain"));
  }
  if (judged.unjudged_rows > 0) found.emplace_back("not judged", unjudged_text(c));
  return found;
}

std::vector<std::string> explanation_lines(const Check& check) {
  std::vector<std::string> lines;
  const Diagnosis& diagnosis = check.diagnosis;
  if (check.verdict != Verdict::differs) {
    if (diagnosis.hidden) {
      lines.push_back(concat("warning: within rounding, but another formula is closer, in ",
                             diagnosis.closer, " of ", counted(diagnosis.telling, "row"), ": ",
                             diagnosis.hidden->words, " (", diagnosis.hidden->id(), ")"));
    }
    return lines;
  }
  if (const FormulaFit* const cause = cause_of(check)) {
    lines.push_back(concat("cause: ", cause_text(*cause), ": ", share_text(*cause),
                           check.is_sampled ? ", of the rows that were tried" : ""));
    if (!cause->same_as.empty()) {
      lines.push_back(concat("the same on this input: ", listed(cause->same_as, " or ")));
    }
    if (!cause->variant.affine) return lines;
  } else if (check.is_too_long) {
    lines.emplace_back("no wrong kernel was tried: a row has more than 1048576 elements");
  } else if (const FormulaFit* const near = diagnosis.most_like()) {
    lines.push_back(concat("most like ", cause_text(*near), ": ", share_text(*near)));
  } else if (check.is_quantized) {
    lines.emplace_back("no known mistake of quantization or of the norm explains this");
  } else if (!check.is_statistic && check.part != "sum") {
    lines.push_back(
        concat("no known wrong kernel explains this",
               diagnosis.has_few_rows ? "; several at once take more rows to tell" : ""));
    // float32 loses 2^29 times as much as float64. Most elements are off by about that.
    const bool is_as_float32 =
        check.arithmetic == DType::float64 && check.judged.tree.ratio < 0x1p31 &&
        check.judged.tree.ratio > 0x1p22 && 2 * check.judged.beyond > check.judged.elements;
    if (is_as_float32) lines.emplace_back(float32_advice());
  }
  const bool has_cause = cause_of(check) != nullptr;
  const std::string shown = shown_by(diagnosis.estimates, has_cause);
  if (!shown.empty()) {
    lines.push_back(concat(has_cause ? "how it shows: " : "what the rows tell: ", shown));
  }
  return lines;
}

void write_text(const Check& check, const Style& style, ByteSink& bytes) {
  TextWriter text(style, bytes);
  const std::string verdict = verdict_sentence(check);
  text.folded(printable(check.actual.name), ": ",
              check.agrees() ? style.good(verdict) : style.bad(verdict), " (",
              name(check.actual.dtype), ", shape ", to_string(file_shape(check.actual)),
              check.slice ? ", " + rows_text(*check.slice) : "", ')');
  for (const auto& [label, words] : figure_words(check)) {
    text.folded(label, label.empty() ? "" : ": ", words);
  }
  if (check.verdict == Verdict::not_judged) return;
  if (check.comparison) text.folded(criteria_line(check, style));
  for (const std::string& line : explanation_lines(check)) text.folded(line);
  for (const std::string& line : check.where) text.folded("where: ", line);
}

void write_text(const std::vector<NamedCheck>& checks, const Style& style, ByteSink& bytes) {
  TextWriter text(style, bytes);
  const NamedCheck* first = nullptr;
  std::int64_t errors = 0;
  for (const NamedCheck& tensor : checks) {
    const Check& c = tensor.check;
    if (!tensor.error.empty()) {
      ++errors;
      text.folded(printable(tensor.name), ": ", style.bad("error"));
      continue;
    }
    if (c.exit_status() == 1 && (first == nullptr || first->check.exit_status() == 2)) {
      first = &tensor;
    }
    if (c.exit_status() == 2 && first == nullptr) first = &tensor;
    const std::string verdict(name(c.verdict));
    const bool is_loop = c.verdict == Verdict::within_rounding && c.as_loop();
    const double ratio = is_loop ? c.judged.loop.ratio : c.judged.tree.ratio;
    text.folded(printable(tensor.name), ": ", c.agrees() ? style.good(verdict) : style.bad(verdict),
                is_loop ? ", as a loop's" : "",
                ratio == 0 ? ""
                           : concat(", worst element ", ratio_text(ratio),
                                    ratio > 1 ? " times" : " of", " what rounding explains"));
    if (c.judged.unjudged_rows > 0) text.raw(style.folded("not judged: " + unjudged_text(c), 2));
    if (c.comparison && !c.comparison->equal()) text.raw(style.folded(criteria_line(c, style), 2));
    for (const std::string& line : explanation_lines(c)) text.raw(style.folded(line, 2));
    for (const std::string& line : c.where) text.raw(style.folded(concat("where: ", line), 2));
  }
  std::string summary = counted(std::ssize(checks), "tensor");
  for (const Verdict verdict : {Verdict::correctly_rounded, Verdict::within_rounding,
                                Verdict::not_judged, Verdict::differs}) {
    const auto count = std::ranges::count_if(checks, [&](const NamedCheck& tensor) {
      return tensor.error.empty() && tensor.check.verdict == verdict;
    });
    const bool is_plural = verdict == Verdict::differs && count > 1;
    if (count > 0) summary += concat(", ", count, ' ', is_plural ? "differ" : name(verdict));
  }
  const auto failing = std::ranges::count_if(checks, [](const NamedCheck& tensor) {
    return tensor.check.comparison && !tensor.check.comparison->equal();
  });
  if (errors > 0) summary += concat(", ", counted(errors, "error"));
  if (failing > 0) summary += concat(", criteria fail in ", failing);
  if (first != nullptr && checks.size() > 1) summary += concat("; first: ", printable(first->name));
  text.folded(summary);
}

void write_json(const Check& check, ByteSink& bytes) {
  Record report = record_of(check);
  report.insert(report.begin(), {"agrees", check.agrees()});
  write_json("check", report, bytes);
}

void write_json(const std::vector<NamedCheck>& checks, ByteSink& bytes) {
  bool agree = true;
  std::optional<Verdict> worst;
  JsonList list("check", {}, "tensors", bytes);
  for (const NamedCheck& tensor : checks) {
    const bool is_judged = tensor.error.empty();
    agree = agree && is_judged && tensor.check.agrees();
    if (is_judged) worst = std::max(worst, std::optional(tensor.check.verdict));
    Record line = is_judged ? record_of(tensor.check) : Record{{"error", tensor.error}};
    line.insert(line.begin(), {"name", tensor.name});
    list.add(line);
  }
  list.finish({{"agrees", agree}, {"verdict", worst ? Value(*worst) : Value()}});
}

void write_junit(const std::vector<NamedCheck>& checks, ByteSink& bytes) {
  std::vector<JunitCase> cases;
  for (const NamedCheck& tensor : checks) {
    const Check& c = tensor.check;
    JunitCase& one = cases.emplace_back(JunitCase{tensor.name});
    if (!tensor.error.empty()) {
      one.error = tensor.error;
    } else if (c.verdict == Verdict::not_judged) {
      one.skipped = verdict_sentence(c);
    } else if (!c.agrees()) {
      const FormulaFit* const cause = cause_of(c);
      one.failure = cause == nullptr ? verdict_sentence(c)
                                     : concat(tensor.name, " differs: ", cause_text(*cause));
      for (const auto& [label, words] : figure_words(c)) {
        one.lines.push_back(concat(label, label.empty() ? "" : ": ", words));
      }
      const std::vector<std::string> explained = explanation_lines(c);
      one.lines.insert(one.lines.end(), explained.begin(), explained.end());
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
