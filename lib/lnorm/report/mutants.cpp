#include "lnorm/diagnosis/mutants.hpp"

#include <string>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/record.hpp"
#include "lnorm/report/reports.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

std::string off_by(const Mutant::Outcome& outcome) {
  return outcome.max_abs ? rounded_text(*outcome.max_abs, 3) : "";
}

// "2 of 60 wrong kernels pass: rms, zeros"
std::string verdict_sentence(const MutantReport& report) {
  const auto survivors = report.survivors();
  const std::string all = counted(report.tried(), "wrong kernel");
  if (report.tried() == 0) return "there is no wrong kernel to try";
  if (survivors.empty()) return concat("none of ", all, " passes");
  return concat(survivors.size(), " of ", all, survivors.size() == 1 ? " passes: " : " pass: ",
                joined(survivors, ", ", [](const Mutant* mutant) { return mutant->id; }));
}

TableLine line_of(const Mutant& mutant, bool several) {
  const Mutant::Outcome& outcome = mutant.hardest();
  TableLine line{mutant.id,
                 {concat(outcome.mismatched, " / ", outcome.elements), off_by(outcome)},
                 mutant.words(),
                 !mutant.is_caught()};
  if (!several) return line;
  const std::vector<std::string>& by = outcome.caught_by;
  line.cells.push_back(by.empty()       ? "no input"
                       : by.size() == 1 ? printable(by.front())
                                        : concat(by.size(), " inputs"));
  return line;
}

void write_table(const std::vector<TableLine>& lines, bool several, TextWriter& text) {
  if (lines.empty()) return;
  std::vector<TableColumn> columns{{"", "out of bounds", Align::right},
                                   {"", "off by", Align::left}};
  if (several) columns.push_back({"", "caught by", Align::left});
  const Table table({"", "wrong kernel", Align::left}, columns, each_of(lines));
  table.write(text, text.style().width);
}

struct ListedKernel {
  std::string id;
  std::vector<std::string> words;  // of each of its formulas
  std::string options;
};

// With what {} stands for.
ListedKernel listed_kernel(const QuantizedKernel& kernel) {
  const auto with = [](std::string_view text, std::string_view number) {
    const std::size_t at = text.find("{}");
    return at == text.npos ? std::string(text)
                           : concat(text.substr(0, at), number, text.substr(at + 2));
  };
  const bool has_number = kernel.id.find("{}") != kernel.id.npos;
  return {with(kernel.id, "N"),
          {with(kernel.words, has_number ? "N" : "float16 or bfloat16")},
          with(kernel.options, "N")};
}

std::vector<ListedKernel> listed_kernels(const ChooseKernel& choose, bool quantizes) {
  std::vector<ListedKernel> listed;
  for (const QuantizedKernel& kernel : quantized_kernels()) {
    if (quantizes && choose(kernel.id)) listed.push_back(listed_kernel(kernel));
  }
  for (const WrongKernel& kernel : wrong_kernels()) {
    if (quantizes && !kernel.is_forward()) continue;
    if (!choose(kernel.id) && std::ranges::none_of(usual_ids(kernel), choose)) continue;
    if (listed.empty() || listed.back().id != kernel.id) {
      listed.push_back({std::string(kernel.id), {}, std::string(kernel.options)});
    }
    std::vector<std::string>& words = listed.back().words;
    if (words.empty() || words.back() != kernel.words) words.emplace_back(kernel.words);
  }
  if (choose(kAxesIds))
    listed.push_back({std::string(kAxesIds), {std::string(kAxesWords)}, axes_option("A[,A...]")});
  return listed;
}

}  // namespace

void write_text(const MutantReport& report, const Style& style, ByteSink& bytes) {
  TextWriter text(style, bytes);
  const bool several = report.inputs().size() != 1;
  const std::string inputs =
      several ? counted(std::ssize(report.inputs()), "input") : printable(report.inputs().front());
  const std::string verdict = verdict_sentence(report);
  text.filled(inputs, ": ", report.survivors().empty() ? style.good(verdict) : style.bad(verdict));
  if (report.criteria()) {
    const auto& of_scales = report.scale_criteria();
    text.folded(concat(criteria_text(*report.criteria()),
                       of_scales ? concat("; of scales: ", criteria_text(*of_scales)) : ""));
  }
  std::vector<TableLine> passing;
  std::vector<TableLine> caught;
  std::vector<std::string> equivalent;
  for (const Mutant& mutant : report.mutants()) {
    if (mutant.is_equivalent()) {
      equivalent.push_back(mutant.id);
    } else {
      (mutant.is_caught() ? caught : passing).push_back(line_of(mutant, several));
    }
  }
  passing.insert(passing.end(), caught.begin(), caught.end());
  write_table(passing, several, text);
  if (!equivalent.empty()) {
    text.filled("equivalent by formula and options: ", joined(equivalent, ", "));
  }
}

void write_json(const MutantReport& report, ByteSink& bytes) {
  std::vector<Record> mutants;
  for (const Mutant& mutant : report.mutants()) {
    const Mutant::Outcome outcome = mutant.is_equivalent() ? Mutant::Outcome{} : mutant.hardest();
    mutants.push_back({{"id", mutant.id},
                       {"words", mutant.words()},
                       {"options", mutant.options},
                       {"caught", mutant.is_caught()},
                       {"caught_by", outcome.caught_by},
                       {"equivalent", mutant.is_equivalent()},
                       {"elements", outcome.elements},
                       {"mismatched", outcome.mismatched},
                       {"max_abs", outcome.max_abs}});
  }
  std::vector<std::string> survivors;
  for (const Mutant* const mutant : report.survivors()) survivors.push_back(mutant->id);
  write_json("mutants",
             {{"agrees", survivors.empty() && report.tried() > 0},
              {"tolerance", report.criteria() ? Value(record_of(*report.criteria())) : Value()},
              {"scale_tolerance",
               report.scale_criteria() ? Value(record_of(*report.scale_criteria())) : Value()},
              {"inputs", report.inputs()},
              {"mutants", std::move(mutants)},
              {"survivors", survivors}},
             bytes);
}

void write_junit(const MutantReport& report, ByteSink& bytes) {
  std::vector<JunitCase> cases;
  for (const Mutant& mutant : report.mutants()) {
    JunitCase& one = cases.emplace_back(JunitCase{mutant.id});
    if (mutant.is_equivalent()) {
      one.skipped = "equivalent by formula and options";
    } else if (!mutant.is_caught()) {
      const std::string off = off_by(mutant.hardest());
      one.failure =
          concat("passes: ", mutant.words(), off.empty() ? "" : concat("; off by at most ", off));
    }
  }
  write_junit("mutants", "passes", cases, bytes);
}

void write_wrong_kernels_text(const ChooseKernel& choose, bool quantizes, const Style& style,
                              ByteSink& bytes) {
  std::vector<TableLine> lines;
  for (const ListedKernel& kernel : listed_kernels(choose, quantizes)) {
    lines.push_back({kernel.id, {kernel.words.front(), kernel.options}});
    for (std::size_t i = 1; i < kernel.words.size(); ++i) {
      lines.push_back({"", {kernel.words[i], ""}});
    }
  }
  TextWriter text(style, bytes);
  const Table table({"", "id", Align::left},
                    {{"", "words", Align::left}, {"", "options", Align::left}}, each_of(lines));
  table.write(text, style.width);
}

void write_wrong_kernels_json(const ChooseKernel& choose, bool quantizes, ByteSink& bytes) {
  std::vector<Record> kernels;
  for (const ListedKernel& kernel : listed_kernels(choose, quantizes)) {
    kernels.push_back(
        {{"id", kernel.id}, {"words", joined(kernel.words, "; ")}, {"options", kernel.options}});
  }
  write_json("mutants", {{"kernels", std::move(kernels)}}, bytes);
}

}  // namespace lnorm
