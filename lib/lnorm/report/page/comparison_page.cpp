#include "lnorm/report/page/comparison_page.hpp"

#include <optional>
#include <utility>

#include "lnorm/core/text.hpp"
#include "lnorm/report/comparison_report.hpp"
#include "lnorm/report/criteria_text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/page/comparison_figures.hpp"
#include "lnorm/report/ulp_text.hpp"

namespace lnorm::page {

namespace {

const Cell kNone{"-", "", ""};

Cell optional_cell(const std::optional<double>& value) {
  return value ? number_cell(*value) : kNone;
}

Cell count_cell(std::int64_t count) { return {std::to_string(count)}; }

std::string exact(Ulps ulps) {
  return ulps.is_real ? value_text(ulps.value()) : std::to_string(ulps.rank);
}

Cell ulps_cell(Ulps ulps, DType dtype) { return {ulps_text(ulps, dtype), exact(ulps)}; }

std::string place_text(const Comparison& c, const ElementPair& pair) {
  return to_string(c.index(pair));
}

Table figures_table(const Comparison& c) {
  Table table{"What the errors are like", {{"", true}, {"value"}, {"at", true}}, {}};
  const auto greatest = [&](std::string name, const std::optional<Greatest<double>>& found) {
    table.rows.push_back({{std::move(name)},
                          found ? number_cell(found->value) : kNone,
                          {found && found->value > 0 ? place_text(c, found->at) : ""}});
  };
  const auto add = [&](std::string name, Cell cell) {
    table.rows.push_back({{std::move(name)}, std::move(cell), {""}});
  };
  greatest("greatest absolute difference", c.absolute);
  greatest("greatest relative difference", c.relative);
  table.rows.push_back({{"greatest distance in ulp"},
                        c.ulps ? ulps_cell(c.ulps->value, c.expected.dtype) : kNone,
                        {c.ulps && c.ulps->value.rank > 0 ? place_text(c, c.ulps->at) : ""}});
  add("mean error", optional_cell(c.errors.mean()));
  add("mean absolute error", optional_cell(c.errors.mean_absolute()));
  add("mean error toward zero", optional_cell(c.errors.mean_toward_zero()));
  add("mean error away from zero", optional_cell(c.errors.mean_away_from_zero()));
  add("root mean square error", optional_cell(c.errors.root_mean_square()));
  const auto cosine = c.errors.cosine();
  add("cosine similarity",
      cosine ? Cell{rounded_text(*cosine, 12), value_text(*cosine), ""} : kNone);  // it is near 1
  add("SQNR in dB", optional_cell(c.errors.sqnr()));
  add("equal numbers", count_cell(c.errors.equal_numbers()));
  if (const auto rounded = c.correctly_rounded()) add("correctly rounded", count_cell(*rounded));
  add("NaN or infinity on one side only", count_cell(c.non_finite_one_side));
  return table;
}

Table worst_table(const Comparison& c) {
  Table table{concat("The worst elements by ", name(c.worst.by())),
              {{"at", true}, {"actual"}, {"expected"}, {"ulp"}, {"absolute"}, {"relative"}},
              {}};
  for (const WorstElement& element : c.worst.elements()) {
    const ElementPair& pair = element.pair;
    std::vector<Cell> row{{place_text(c, pair)},
                          {value_text(pair.actual, c.actual.dtype)},
                          {value_text(pair.expected, c.expected.dtype)}};
    if (const auto& distances = element.distances) {
      row.insert(row.end(), {ulps_cell(distances->ulps, c.expected.dtype),
                             number_cell(distances->absolute), number_cell(distances->relative)});
    } else {
      row.insert(row.end(), {kNone, kNone, kNone});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table mismatch_table(const Comparison& c) {
  Table table{"The first mismatches", {{"at", true}, {"actual"}, {"expected"}}, {}};
  for (const ElementPair& pair : c.first_mismatches) {
    table.rows.push_back({{place_text(c, pair)},
                          {value_text(pair.actual, c.actual.dtype)},
                          {value_text(pair.expected, c.expected.dtype)}});
  }
  return table;
}

std::string side_text(const TensorInfo& info) {
  return concat(info.name, ": ", name(info.dtype), ", shape ", to_string(info.shape));
}

// Along which axes the rows of the figures go.
std::string row_axes_text(const Comparison& c) {
  const Axes last = c.actual.shape.empty() ? Axes{} : Axes{c.actual.shape.size() - 1};
  return concat("The rows go along ", axes_text(c.row_max_axes.value_or(last)), ".");
}

std::vector<Cell> line_of(const PairComparison& pair, const std::string& section) {
  const std::string link =
      section.empty() ? "" : concat("<a href=\"#", section, "\">", escaped(pair.name), "</a>");
  std::vector<Cell> line{{pair.name, "", link}};
  if (!pair.comparison) {
    line.insert(line.end(), {{"error"}, kNone, kNone, kNone, kNone, kNone, kNone, kNone});
    return line;
  }
  const Comparison& c = *pair.comparison;
  line.insert(line.end(), {{c.equal() ? "agree" : "differ"}, {to_string(c.actual.shape)}});
  if (!c.same_shape) {
    line.insert(line.end(), {kNone, kNone, kNone, kNone, kNone, kNone});
    return line;
  }
  const auto greatest = [](const std::optional<Greatest<double>>& found) {
    return found ? number_cell(found->value) : kNone;
  };
  line.insert(line.end(),
              {count_cell(c.mismatched), greatest(c.absolute), greatest(c.relative),
               c.ulps ? ulps_cell(c.ulps->value, c.expected.dtype) : kNone,
               optional_cell(c.errors.root_mean_square()), optional_cell(c.errors.sqnr())});
  return line;
}

void add_names(Section& section, std::string_view file, const std::vector<std::string>& names) {
  if (names.empty()) return;
  std::string text = concat("In ", file, " alone: ");
  for (const std::string& name : names) {
    text += concat(&name == names.data() ? "" : ", ", name);
  }
  section.paragraph(text);
}

}  // namespace

Section comparison_section(std::string id, std::string_view title, const Comparison& c) {
  Section section(std::move(id), title);
  section.paragraph(c.equal() ? "They agree." : "They differ.",
                    c.equal() ? "verdict good" : "verdict bad");
  Facts facts{{"Actual", side_text(c.actual)}, {"Expected", side_text(c.expected)}};
  if (!c.same_shape) {
    section.facts(facts);
    section.paragraph("The shapes differ, so that no elements were compared.");
    return section;
  }
  if (c.slice) facts.emplace_back("Rows", rows_text(*c.slice));
  facts.emplace_back("Criteria", criteria_text(c.criteria));
  if (!c.failures().empty()) facts.emplace_back("Fails", failures_text(c.criteria, c.failures()));
  facts.emplace_back("Mismatched", concat(c.mismatched, " of ", counted(c.elements, "element"),
                                          " (", percentage_text(c.mismatched, c.elements), ")"));
  section.html("<div class=\"grid\">\n<div>\n");
  section.facts(facts);
  section.html("</div>\n<div>\n");
  section.table(figures_table(c));
  section.html("</div>\n</div>\n");
  if (!c.error_map) return section;  // there are no elements
  const bool is_equal = c.non_finite_one_side == 0 && c.non_finite_differing == 0 &&
                        (!c.absolute || c.absolute->value == 0);
  if (is_equal) {
    section.paragraph("There are no errors to draw: all numbers are equal.");
    return section;
  }
  std::vector<Figure> figures;
  if (c.ulps) figures.push_back(ulp_figure(c));
  figures.push_back(error_figure(c));
  section.figures(std::move(figures));
  if (!c.actual.shape.empty()) section.paragraph(row_axes_text(c));
  figures.clear();
  figures.push_back(error_map_figure(c));
  section.figures(std::move(figures));
  if (!c.worst.elements().empty()) section.table(worst_table(c));
  if (!c.first_mismatches.empty()) section.table(mismatch_table(c));
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

}  // namespace lnorm::page
