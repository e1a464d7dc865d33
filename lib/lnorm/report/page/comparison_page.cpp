#include <algorithm>
#include <utility>

#include "lnorm/core/text.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/page/figures.hpp"
#include "lnorm/report/page/sections.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm::page {

namespace {

const Cell kNone{"-", "", ""};

Cell cell_of(const Value& value, const Comparison& c) {
  if (const auto* const number = std::get_if<double>(&value)) return number_cell(*number);
  if (const auto* const count = std::get_if<std::int64_t>(&value)) return {std::to_string(*count)};
  if (const auto* const ulps = std::get_if<Ulps>(&value)) {
    return {ulps_text(*ulps, c.expected.dtype), exact_text(*ulps)};
  }
  if (const auto* const index = std::get_if<Shape>(&value)) return {to_string(*index)};
  const auto* const element = std::get_if<Element>(&value);
  return element ? Cell{value_text(element->value, element->dtype)} : kNone;
}

Table figures_table(const Record& record, const Comparison& c) {
  Table table{"What the errors are like", {{"", true}, {"value"}, {"at", true}}, {}};
  for (const auto& [key, value, words, column, came] : record) {
    if (words.empty()) continue;
    Cell cell = cell_of(value, c);
    Cell at{""};
    if (key == "errors.cosine" && c.errors.cosine()) {
      constexpr int kDigits = 12;  // it is near 1
      cell.text = rounded_text(*c.errors.cosine(), kDigits);
    } else if (const auto* const greatest = std::get_if<Record>(&value)) {
      cell = cell_of(greatest->front().value, c);
      if (cell.text != "0") at = cell_of((*greatest)[1].value, c);
    }
    table.rows.push_back({{std::string(words)}, std::move(cell), std::move(at)});
  }
  return table;
}

// Of a list in the record.
void add_records(const std::string& caption, std::string_view list, const Record& record,
                 const Comparison& c, Section& section) {
  const auto found = std::ranges::find(record, list, &lnorm::Figure::key);
  const auto& lines = std::get<std::vector<Record>>(found->value);
  if (lines.empty()) return;
  Table table{caption, {}, {}};
  for (const auto& [key, value, words, column, came] : lines.front()) {
    table.columns.push_back({std::string(words), std::holds_alternative<Shape>(value)});
  }
  for (const Record& line : lines) {
    std::vector<Cell>& row = table.rows.emplace_back();
    for (const auto& figure : line) row.push_back(cell_of(figure.value, c));
  }
  section.table(table);
}

// Along which axes the rows of the figures go.
std::string row_axes_text(const Comparison& c) {
  const Axes last = c.actual.shape.empty() ? Axes{} : Axes{c.actual.shape.size() - 1};
  const Axes& axes = c.row_max_axes;
  // Those of the map lie one after another.
  const bool are_last =
      axes.empty() || axes.front() + axes.size() == std::max<std::size_t>(1, c.actual.shape.size());
  return concat("The rows go along ", axes_text(file_axes(c.actual, are_last ? axes : last)), ".");
}

constexpr std::size_t kPairColumns = 9;

std::vector<Cell> line_of(const PairComparison& pair, const std::string& section) {
  std::vector<Cell> line{link_cell(pair.name, section)};
  if (!pair.comparison) {
    line.push_back({"error"});
  } else {
    const Comparison& c = *pair.comparison;
    line.insert(line.end(), {{c.equal() ? "agree" : "differ"}, {to_string(file_shape(c.actual))}});
    if (c.same_shape) {
      const Value ulps = c.ulps ? Value(c.ulps->value) : Value();
      for (const Value& value :
           {Value(c.mismatched), Value(c.greatest(WorstBy::abs)), Value(c.greatest(WorstBy::rel)),
            ulps, Value(c.errors.root_mean_square()), Value(c.errors.sqnr())}) {
        line.push_back(cell_of(value, c));
      }
    }
  }
  line.resize(kPairColumns, kNone);
  return line;
}

void add_names(Section& section, std::string_view file, const std::vector<std::string>& names) {
  if (!names.empty()) section.paragraph(concat("In ", file, " alone: ", listed(names, ", ")));
}

// How a comparison came out.
void add_comparison(const Comparison& c, Section& section) {
  section.paragraph(c.equal() ? "They agree." : "They differ.",
                    c.equal() ? "verdict good" : "verdict bad");
  Facts facts{{"Actual", tensor_text(c.actual)}, {"Expected", tensor_text(c.expected)}};
  if (!c.same_shape) {
    section.facts(facts);
    section.paragraph("The shapes differ, so that no elements were compared.");
    return;
  }
  if (c.slice) facts.emplace_back("Rows", rows_text(*c.slice));
  facts.emplace_back("Criteria", criteria_text(c.criteria));
  if (!c.failures().empty()) facts.emplace_back("Fails", failures_text(c.criteria, c.failures()));
  facts.emplace_back("Mismatched", concat(c.mismatched, " of ", counted(c.compared(), "element"),
                                          " (", percentage_text(c.mismatched, c.compared()), ")"));
  if (!c.where.empty()) facts.emplace_back("Where", c.where);
  if (c.fit) facts.emplace_back("Fit", fit_text(*c.fit));
  const Record record = record_of(c);
  section.facts(facts, figures_table(record, c));
  if (!c.error_map) return;  // there are no elements
  const bool is_equal = c.non_finite_one_side == 0 && c.non_finite_differing == 0 &&
                        (!c.absolute || c.absolute->value == 0);
  if (is_equal) {
    section.paragraph("There are no errors to draw: all numbers are equal.");
    return;
  }
  std::vector<Figure> figures;
  if (c.ulps) figures.push_back(ulp_figure(c));
  figures.push_back(error_figure(c));
  section.figures(figures);
  if (!c.actual.shape.empty()) section.paragraph(row_axes_text(c));
  section.figures(figures_of(error_map_figure(c)));
  add_records(concat("The worst elements by ", name(c.worst.by())), "worst.elements", record, c,
              section);
  add_records("The first mismatches", "mismatches", record, c, section);
}

}  // namespace

Section comparison_section(std::string id, std::string_view title, const Comparison& comparison) {
  Section section(std::move(id), title);
  add_comparison(comparison, section);
  return section;
}

Section set_comparison_section(const SetComparison& set, const std::vector<std::string>& sections) {
  Section section("pairs", "");
  section.paragraph(set.equal()    ? "They agree."
                    : set.differ() ? "They differ."
                                   : "They agree as far as they can be read.",
                    set.differ() ? "verdict bad" : "verdict good");
  Facts facts{{"Actual", set.actual},
              {"Expected", set.expected},
              {"Tensors", concat(set.agreeing(), " agree, ", set.differing(), " differ")}};
  if (set.unreadable() > 0) {
    facts.back().second += concat(", ", set.unreadable(), " could not be compared");
  }
  if (const auto first = set.first())
    facts.emplace_back("First that differs", set.pairs[*first].name);
  if (const auto worst = set.worst()) facts.emplace_back("Worst", set.pairs[*worst].name);
  section.facts(facts);
  add_names(section, set.actual, set.actual_only);
  add_names(section, set.expected, set.expected_only);
  Table table{"All pairs; those that differ most are linked to their sections",
              {{"tensor", true},
               {"result", true},
               {"shape", true},
               {"mismatched"},
               {"greatest abs"},
               {"greatest rel"},
               {"greatest ulp"},
               {"RMSE"},
               {"SQNR in dB"}},
              {},
              true};
  for (std::size_t i = 0; i < set.pairs.size(); ++i) {
    table.rows.push_back(line_of(set.pairs[i], sections[i]));
  }
  section.table(table);
  return section;
}

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
