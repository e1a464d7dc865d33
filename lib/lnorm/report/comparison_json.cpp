#include "lnorm/report/comparison_json.hpp"

#include <type_traits>

#include "lnorm/report/json_value.hpp"

namespace lnorm {

namespace {

using Json = nlohmann::ordered_json;

Json side(const TensorInfo& info) {
  return {{"name", info.name}, {"dtype", name(info.dtype)}, {"shape", info.shape}};
}

Json rows_json(const MismatchedRows& rows) {
  return {{"axes", rows.axes},
          {"rows", rows.rows},
          {"mismatched", rows.mismatched},
          {"first", rows.mismatched == 0 ? Json() : Json(rows.first)}};
}

Json pair_json(const Comparison& comparison, const ElementPair& pair) {
  return {{"index", index_of(pair.position, comparison.actual.shape)},
          {"actual", json_value(pair.actual, comparison.actual.dtype)},
          {"expected", json_value(pair.expected, comparison.expected.dtype)}};
}

Json worst_json(const Comparison& comparison) {
  Json elements = Json::array();
  for (const WorstElement& element : comparison.worst.elements()) {
    Json json = pair_json(comparison, element.pair);
    if (comparison.rows) json["row"] = comparison.row_index(element.pair.position);
    const auto& distances = element.distances;
    json["ulp"] = distances ? Json(distances->ulps) : Json();
    json["absolute"] = distances ? json_value(distances->absolute) : Json();
    json["relative"] = distances ? json_value(distances->relative) : Json();
    json["row_max"] = comparison.row_max_axes ? json_value(element.row_max) : Json();
    elements.push_back(std::move(json));
  }
  return {{"by", name(comparison.worst.by())},
          {"row_max_axes", comparison.row_max_axes ? Json(*comparison.row_max_axes) : Json()},
          {"elements", std::move(elements)}};
}

template <class T>
Json greatest_json(const Comparison& comparison, const std::optional<Greatest<T>>& greatest) {
  if (!greatest) return nullptr;
  Json result;
  if constexpr (std::is_same_v<T, double>) {
    result["value"] = json_value(greatest->value);
  } else {
    result["value"] = greatest->value;
  }
  result.update(pair_json(comparison, greatest->at));
  return result;
}

// Without the keys that every report has.
Json comparison_object(const Comparison& comparison) {
  const auto counted = [&](const Json& value) { return comparison.same_shape ? value : Json(); };
  const Tolerance& tolerance = comparison.tolerance;
  Json mismatches = Json::array();
  for (const ElementPair& pair : comparison.first_mismatches) {
    mismatches.push_back(pair_json(comparison, pair));
  }
  Json report{{"actual", side(comparison.actual)},
              {"expected", side(comparison.expected)},
              {"equal", comparison.equal()},
              {"elements", counted(comparison.elements)},
              {"mismatched", counted(comparison.mismatched)},
              {"tolerance",
               {{"rtol", tolerance.ulp_alone ? Json() : Json(tolerance.rtol)},
                {"atol", tolerance.ulp_alone ? Json() : Json(tolerance.atol)},
                {"max_ulp", tolerance.max_ulp ? Json(*tolerance.max_ulp) : Json()},
                {"equal_nan", tolerance.equal_nan}}},
              {"greatest_absolute_difference", greatest_json(comparison, comparison.absolute)},
              {"greatest_relative_difference", greatest_json(comparison, comparison.relative)},
              {"greatest_ulp_distance", greatest_json(comparison, comparison.ulps)},
              {"non_finite_one_side", counted(comparison.non_finite_one_side)},
              {"non_finite_differing", counted(comparison.non_finite_differing)},
              {"mismatches", mismatches},
              {"worst", counted(worst_json(comparison))}};
  if (comparison.rows) report["rows"] = rows_json(*comparison.rows);
  return report;
}

Json pair_of_set_json(const PairComparison& pair) {
  Json result{{"name", pair.name}};
  if (!pair.comparison) {
    result["error"] = pair.error;
    return result;
  }
  result.update(comparison_object(*pair.comparison));
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

}  // namespace

std::string comparison_json(const Comparison& comparison) {
  Json report{{"schema", 1}, {"command", "compare"}};
  report.update(comparison_object(comparison));
  return json_text(report) + '\n';
}

void write_comparison_json(const SetComparison& set, ByteSink& bytes) {
  std::string head = json_text(Json{{"schema", 1},
                                    {"command", "compare"},
                                    {"actual", {{"name", set.actual}}},
                                    {"expected", {{"name", set.expected}}},
                                    {"equal", set.equal()}});
  head.pop_back();  // the brace that closes it
  bytes.write(head + ",\"tensors\":[");
  for (const PairComparison& pair : set.pairs) {
    if (&pair != set.pairs.data()) bytes.write(",");
    bytes.write(json_text(pair_of_set_json(pair)));
  }
  std::string tail = json_text(Json{{"actual_only", set.actual_only},
                                    {"expected_only", set.expected_only},
                                    {"common", set.common},
                                    {"summary", summary_json(set)}});
  bytes.write("]," + tail.erase(0, 1) + '\n');
}

}  // namespace lnorm
