#include <cmath>
#include <cstdint>

#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/csv.hpp"
#include "lnorm/report/error_figures.hpp"
#include "lnorm/report/json_value.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm {

namespace {

Json rows_json(const MismatchedRows& rows) {
  return {{"axes", rows.axes},
          {"rows", rows.rows},
          {"mismatched", rows.mismatched},
          {"first", rows.mismatched == 0 ? Json() : Json(rows.first)}};
}

// A whole number without a point, as counts are.
Json whole_json(const std::optional<double>& bound) {
  if (!bound) return nullptr;
  if (*bound == std::floor(*bound) && *bound < 0x1p53) return static_cast<std::int64_t>(*bound);
  return json_value(*bound);
}

Json bound_json(const Criteria& criteria, const CriterionRow& row) {
  if (row.criterion == Criterion::max_ulp) return whole_json(criteria.max_ulp);
  if (!row.counts()) return json_value(criteria.*row.bound);
  const std::optional<MismatchLimit>& limit = criteria.max_mismatched;
  if (limit && limit->is_percentage) return bound_text(criteria, row);
  return limit ? whole_json(limit->value) : Json();
}

Json criteria_json(const Criteria& criteria) {
  const auto& tolerance = criteria.tolerance;
  Json result{{"rtol", tolerance ? Json(tolerance->rtol) : Json()},
              {"atol", tolerance ? Json(tolerance->atol) : Json()}};
  for (const CriterionRow& row : criterion_rows()) {
    if (row.criterion <= Criterion::tolerance) continue;
    result[std::string(row.name)] = bound_json(criteria, row);
    if (row.criterion == Criterion::max_ulp) result["equal_nan"] = criteria.equal_nan;
  }
  return result;
}

Json failures_json(const std::vector<Failure>& failures) {
  Json result = Json::array();
  for (const auto& [criterion, found] : failures) {
    const CriterionRow& row = row_of(criterion);
    result.push_back(
        {{"criterion", row.name}, {"found", row.counts() ? whole_json(found) : json_value(found)}});
  }
  return result;
}

Json errors_json(const Comparison& comparison) {
  const ErrorStats& errors = comparison.errors;
  const bool same_dtype = comparison.actual.dtype == comparison.expected.dtype;
  Json result{{"pairs", errors.pairs()},
              {"equal_bits", same_dtype ? Json(errors.equal_bits()) : Json()},
              {"equal_numbers", errors.equal_numbers()},
              {"correctly_rounded", json_value(comparison.correctly_rounded())}};
  for (const ErrorFigure& figure : kErrorFigures) {
    result[std::string(figure.key)] = json_value((errors.*figure.of)());
  }
  return result;
}

Json ulp_json(const Comparison& comparison) {
  Json distribution = Json::array();
  std::int64_t within = 0;
  for (std::size_t i = 0; i < comparison.ulp_counts.size(); ++i) {
    within += comparison.ulp_counts.count(i);
    distribution.push_back({{"at_most", whole_json(UlpCounts::bound(i))}, {"elements", within}});
  }
  return {{"dtype", name(comparison.ulp_dtype())}, {"distribution", std::move(distribution)}};
}

Json pair_json(const Comparison& comparison, const ElementPair& pair) {
  return {{"index", comparison.index(pair)},
          {"actual", json_value(pair.actual, comparison.actual.dtype)},
          {"expected", json_value(pair.expected, comparison.expected.dtype)}};
}

Json worst_json(const Comparison& comparison) {
  Json elements = Json::array();
  for (const WorstElement& element : comparison.worst.elements()) {
    Json json = pair_json(comparison, element.pair);
    if (comparison.rows) json["row"] = comparison.row_index(element.pair);
    const auto& distances = element.distances;
    json["ulp"] = distances ? json_value(distances->ulps) : Json();
    json["absolute"] = distances ? json_value(distances->absolute) : Json();
    json["relative"] = distances ? json_value(distances->relative) : Json();
    json["row_ulp"] = distances ? json_value(distances->row_ulps) : Json();
    json["row_max"] = element.row_max != kNoneFinite ? json_value(element.row_max) : Json();
    elements.push_back(std::move(json));
  }
  return {{"by", name(comparison.worst.by())},
          {"row_max_axes", comparison.row_max_axes},
          {"elements", std::move(elements)}};
}

template <class T>
Json greatest_json(const Comparison& comparison, const std::optional<Greatest<T>>& greatest) {
  if (!greatest) return nullptr;
  Json result{{"value", json_value(greatest->value)}};
  result.update(pair_json(comparison, greatest->at));
  return result;
}

Json pair_of_set_json(const PairComparison& pair) {
  Json result{{"name", pair.name}};
  result.update(pair.comparison ? comparison_object(*pair.comparison)
                                : Json{{"error", pair.error}});
  return result;
}

Json summary_json(const SetComparison& set) {
  const auto name_of = [&](const std::optional<std::size_t>& pair) {
    return pair ? Json(set.pairs[*pair].name) : Json();
  };
  return {{"tensors", set.pairs.size()},
          {"agree", set.agreeing()},
          {"differ", set.differing()},
          {"errors", set.unreadable()},
          {"first", name_of(set.first())},
          {"worst", name_of(set.worst())},
          {"by", name(set.by)}};
}

// CSV.

std::string failed_criteria(const Comparison& c) {
  return joined(c.failures(), " ", [](const Failure& found) { return name(found.criterion); });
}

std::vector<CsvField> csv_fields(std::string_view name, std::string_view result,
                                 const Comparison& c) {
  const auto& ulps = c.ulps;
  std::vector<CsvField> fields{{"name", csv_text(name)},
                               {"result", std::string(result)},
                               {"actual_dtype", std::string(lnorm::name(c.actual.dtype))},
                               {"expected_dtype", std::string(lnorm::name(c.expected.dtype))},
                               {"actual_shape", csv_text(file_shape(c.actual))},
                               {"expected_shape", csv_text(file_shape(c.expected))},
                               {"elements", csv_text(c.compared())},
                               {"mismatched", csv_text(c.mismatched)},
                               {"greatest_absolute_difference", csv_text(c.greatest(WorstBy::abs))},
                               {"greatest_relative_difference", csv_text(c.greatest(WorstBy::rel))},
                               {"greatest_ulp_distance", ulps ? exact_text(ulps->value) : ""},
                               {"non_finite_one_side", csv_text(c.non_finite_one_side)},
                               {"non_finite_differing", csv_text(c.non_finite_differing)},
                               {"failed", failed_criteria(c)},
                               {"pairs", csv_text(c.errors.pairs())},
                               {"equal_numbers", csv_text(c.errors.equal_numbers())}};
  const auto add_errors = [&](bool late) {
    for (const ErrorFigure& figure : kErrorFigures) {
      if (figure.came_late != late) continue;
      fields.push_back({std::string(figure.column), csv_text((c.errors.*figure.of)())});
    }
  };
  add_errors(false);
  fields.push_back({"correctly_rounded", csv_text(c.correctly_rounded())});
  add_errors(true);
  fields.push_back({"greatest_row_ulp_distance", csv_text(c.greatest(WorstBy::row_ulp))});
  return fields;
}

constexpr std::size_t kOfNames = 2;   // fields that are there if nothing was compared
constexpr std::size_t kOfShapes = 6;  // fields that are there if no elements were compared
constexpr std::size_t kAll = SIZE_MAX;

// known: how many fields are there.
std::string line_of(std::string_view name, std::string_view result,
                    const Comparison& c = Comparison(), std::size_t known = kOfNames) {
  std::vector<CsvField> fields = csv_fields(name, result, c);
  for (std::size_t i = known; i < fields.size(); ++i) fields[i].cell.clear();
  return csv_line(fields, &CsvField::cell);
}
std::string line_of(std::string_view name, const Comparison& c) {
  return line_of(name, c.equal() ? "agree" : "differ", c, c.same_shape ? kAll : kOfShapes);
}

std::string csv_names() { return csv_line(csv_fields("", "", Comparison()), &CsvField::name); }

}  // namespace

Json comparison_object(const Comparison& comparison) {
  const std::optional<Fit>& fit = comparison.fit;
  const auto counted = [&](const Json& value) { return comparison.same_shape ? value : Json(); };
  Json mismatches = Json::array();
  for (const ElementPair& pair : comparison.first_mismatches) {
    mismatches.push_back(pair_json(comparison, pair));
  }
  Json report{{"actual", json_value(comparison.actual)},
              {"expected", json_value(comparison.expected)},
              {"equal", comparison.equal()},
              {"elements", counted(comparison.compared())},
              {"mismatched", counted(comparison.mismatched)},
              {"tolerance", criteria_json(comparison.criteria)},
              {"failed", failures_json(comparison.failures())},
              {"greatest_absolute_difference", greatest_json(comparison, comparison.absolute)},
              {"greatest_relative_difference", greatest_json(comparison, comparison.relative)},
              {"greatest_ulp_distance", greatest_json(comparison, comparison.ulps)},
              {"greatest_row_ulp_distance", greatest_json(comparison, comparison.row_ulps)},
              {"non_finite_one_side", counted(comparison.non_finite_one_side)},
              {"rounded_to_infinity", counted(comparison.rounded_to_infinity)},
              {"non_finite_differing", counted(comparison.non_finite_differing)},
              {"errors", counted(errors_json(comparison))},
              {"ulp", counted(ulp_json(comparison))},
              {"mismatches", mismatches},
              {"where", comparison.where.empty() ? Json::array() : Json::array({comparison.where})},
              {"affected_rows", counted(json_value(comparison.affected_rows))},
              {"affected_columns", counted(json_value(comparison.affected_columns))},
              {"fit", fit ? Json{{"scale", fit->scale}, {"offset", fit->offset}} : Json()},
              {"worst", counted(worst_json(comparison))}};
  if (comparison.slice) report["slice"] = json_value(*comparison.slice);
  if (comparison.rows) report["rows"] = rows_json(*comparison.rows);
  return report;
}

void write_json(const Comparison& comparison, ByteSink& bytes) {
  Json report{{"schema", 1}, {"command", "compare"}};
  report.update(comparison_object(comparison));
  bytes.write(json_text(report) + '\n');
}

void write_json(const SetComparison& set, ByteSink& bytes) {
  JsonList list({{"schema", 1},
                 {"command", "compare"},
                 {"actual", {{"name", set.actual}}},
                 {"expected", {{"name", set.expected}}},
                 {"equal", set.equal()}},
                "tensors", bytes);
  for (const PairComparison& pair : set.pairs) list.add(pair_of_set_json(pair));
  list.finish({{"actual_only", set.actual_only},
               {"expected_only", set.expected_only},
               {"common", set.common},
               {"summary", summary_json(set)}});
}

void write_csv(const Comparison& comparison, ByteSink& bytes) {
  bytes.write(csv_names() + line_of(comparison.actual.name, comparison));
}

void write_rows_csv(const std::vector<RowErrors>& rows, ByteSink& bytes) {
  bytes.write("row,elements,mismatched,max_abs\n");
  for (const RowErrors& row : rows) {
    bytes.write(concat(row.row, ',', row.elements, ',', row.mismatched, ',',
                       row.max_abs == kNoneFinite ? "" : value_text(row.max_abs), '\n'));
  }
}

void write_csv(const SetComparison& set, ByteSink& bytes) {
  bytes.write(csv_names());
  for (const PairComparison& pair : set.pairs) {
    bytes.write(pair.comparison ? line_of(pair.name, *pair.comparison)
                                : line_of(pair.name, "error"));
  }
  for (const std::string& name : set.actual_only) bytes.write(line_of(name, "actual_only"));
  for (const std::string& name : set.expected_only) bytes.write(line_of(name, "expected_only"));
}

}  // namespace lnorm
