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
  const JudgedRows& judged = c.judged;
  const auto share = [&](std::int64_t count) {
    return concat(count, " of ", counted(judged.elements, "element"), " (",
                  percentage_text(count, judged.elements), ")");
  };
  Facts facts{{"Input", concat(printable(c.x.name), ", ", name(c.x.dtype), ", shape ",
                               to_string(file_shape(c.x)))},
              {"Output", concat(printable(c.actual.name), ", ", name(c.actual.dtype))},
              {"Arithmetic", std::string(name(c.arithmetic))},
              {"Correctly rounded", share(judged.correctly_rounded)},
              {"Beyond rounding", share(judged.beyond)}};
  if (c.slice) facts.emplace_back("Rows", rows_text(*c.slice));
  if (c.verdict != Verdict::not_judged && judged.tree.ratio > 0) {
    facts.emplace_back("Worst element",
                       concat(rounded_text(judged.tree.ratio, 3), " times its bound, at ",
                              to_string(index_of(c, judged.tree))));
  }
  if (judged.unjudged_rows > 0) {
    facts.emplace_back("Not judged", counted(judged.unjudged_rows, "row"));
  }
  section.facts(facts);
  for (const std::string& line : explanation_lines(c)) section.paragraph(line);
  for (const std::string& line : c.where) section.paragraph("Where: " + line);
  if (c.details) add_comparison(*c.details, section);
  return section;
}

}  // namespace lnorm::page
