#include "lnorm/core/text.hpp"
#include "lnorm/report/check_words.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/page/sections.hpp"

namespace lnorm::page {

Section check_section(std::string id, std::string_view title, const Check& c) {
  Section section(std::move(id), title);
  section.paragraph(concat(printable(c.actual.name), ": ", verdict_sentence(c)),
                    c.agrees() ? "verdict good" : "verdict bad");
  Facts facts{{"Input", concat(printable(c.x.name), ", ", name(c.x.dtype), ", shape ",
                               to_string(file_shape(c.x)))},
              {"Output", concat(printable(c.actual.name), ", ", name(c.actual.dtype))},
              {"Arithmetic", std::string(name(c.arithmetic))}};
  if (c.slice) facts.emplace_back("Rows", rows_text(*c.slice));
  std::vector<std::string> lines;
  for (const auto& [label, words] : figure_words(c)) {
    if (label.empty()) lines.push_back(words);
    if (!label.empty()) facts.emplace_back(capitalized(label), words);
  }
  if (c.comparison) {
    facts.emplace_back("Criteria", criteria_text(c.comparison->criteria));
    const std::string failures = failures_text(c.comparison->criteria, c.comparison->failures());
    if (!failures.empty()) facts.emplace_back("Fails", failures);
  }
  section.facts(facts);
  for (const std::string& line : explanation_lines(c)) lines.push_back(line);
  for (const std::string& line : lines) section.paragraph(line);
  for (const std::string& line : c.where) section.paragraph("Where: " + line);
  if (c.details) add_comparison(*c.details, section);
  return section;
}

}  // namespace lnorm::page
