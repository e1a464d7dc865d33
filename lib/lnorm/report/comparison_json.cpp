#include "lnorm/report/comparison_json.hpp"

#include <cmath>
#include <type_traits>

#include "lnorm/report/criteria_text.hpp"
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

Json ulps_json(Ulps ulps) { return ulps.is_real ? json_value(ulps.value()) : Json(ulps.rank); }

// A whole number without a point, as counts are.
Json bound_json(const std::optional<double>& bound) {
  if (!bound) return nullptr;
  if (*bound == std::floor(*bound) && *bound < 0x1p53) return static_cast<std::int64_t>(*bound);
  return json_value(*bound);
}

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? json_value(*value) : Json();
}

Json criteria_json(const Criteria& criteria) {
  const auto& [tolerance, max_ulp, max_abs, max_mismatched, max_mean_abs, max_rmse, min_cosine,
               min_sqnr, equal_nan] = criteria;
  const auto limit = [](const MismatchLimit& most) -> Json {
    if (most.is_percentage) return mismatch_limit_text(most);
    return bound_json(most.value);
  };
  return {{"rtol", tolerance ? Json(tolerance->rtol) : Json()},
          {"atol", tolerance ? Json(tolerance->atol) : Json()},
          {"max_ulp", bound_json(max_ulp)},
          {"equal_nan", equal_nan},
          {"max_abs", optional_json(max_abs)},
          {"max_mismatched", max_mismatched ? limit(*max_mismatched) : Json()},
          {"max_mean_abs", optional_json(max_mean_abs)},
          {"max_rmse", optional_json(max_rmse)},
          {"min_cosine", optional_json(min_cosine)},
          {"min_sqnr", optional_json(min_sqnr)}};
}

Json failures_json(const std::vector<Failure>& failures) {
  Json result = Json::array();
  for (const Failure& failure : failures) {
    const bool is_count = failure.criterion == Criterion::finite ||
                          failure.criterion == Criterion::tolerance ||
                          failure.criterion == Criterion::max_mismatched;
    result.push_back({{"criterion", name(failure.criterion)},
                      {"found", is_count ? bound_json(failure.found) : json_value(failure.found)}});
  }
  return result;
}

Json errors_json(const Comparison& comparison) {
  const ErrorStats& errors = comparison.errors;
  const bool same_dtype = comparison.actual.dtype == comparison.expected.dtype;
  const auto rounded = comparison.correctly_rounded();
  return {{"pairs", errors.pairs()},
          {"equal_bits", same_dtype ? Json(errors.equal_bits()) : Json()},
          {"equal_numbers", errors.equal_numbers()},
          {"correctly_rounded", rounded ? Json(*rounded) : Json()},
          {"mean", optional_json(errors.mean())},
          {"mean_absolute", optional_json(errors.mean_absolute())},
          {"mean_toward_zero", optional_json(errors.mean_toward_zero())},
          {"mean_away_from_zero", optional_json(errors.mean_away_from_zero())},
          {"root_mean_square", optional_json(errors.root_mean_square())},
          {"cosine", optional_json(errors.cosine())},
          {"sqnr_db", optional_json(errors.sqnr())}};
}

Json ulp_json(const Comparison& comparison) {
  Json distribution = Json::array();
  std::int64_t within = 0;
  for (std::size_t i = 0; i < comparison.ulp_counts.size(); ++i) {
    within += comparison.ulp_counts.count(i);
    distribution.push_back({{"at_most", bound_json(UlpCounts::bound(i))}, {"elements", within}});
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
    json["ulp"] = distances ? ulps_json(distances->ulps) : Json();
    json["absolute"] = distances ? json_value(distances->absolute) : Json();
    json["relative"] = distances ? json_value(distances->relative) : Json();
    const bool has_row_max = comparison.row_max_axes && element.row_max != kNoneFinite;
    json["row_max"] = has_row_max ? json_value(element.row_max) : Json();
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
    result["value"] = ulps_json(greatest->value);
  }
  result.update(pair_json(comparison, greatest->at));
  return result;
}

// Without the keys that every report has.
Json comparison_object(const Comparison& comparison) {
  const auto counted = [&](const Json& value) { return comparison.same_shape ? value : Json(); };
  Json mismatches = Json::array();
  for (const ElementPair& pair : comparison.first_mismatches) {
    mismatches.push_back(pair_json(comparison, pair));
  }
  Json report{{"actual", side(comparison.actual)},
              {"expected", side(comparison.expected)},
              {"equal", comparison.equal()},
              {"elements", counted(comparison.elements)},
              {"mismatched", counted(comparison.mismatched)},
              {"tolerance", criteria_json(comparison.criteria)},
              {"failed", failures_json(comparison.failures())},
              {"greatest_absolute_difference", greatest_json(comparison, comparison.absolute)},
              {"greatest_relative_difference", greatest_json(comparison, comparison.relative)},
              {"greatest_ulp_distance", greatest_json(comparison, comparison.ulps)},
              {"non_finite_one_side", counted(comparison.non_finite_one_side)},
              {"rounded_to_infinity", counted(comparison.rounded_to_infinity)},
              {"non_finite_differing", counted(comparison.non_finite_differing)},
              {"errors", counted(errors_json(comparison))},
              {"ulp", counted(ulp_json(comparison))},
              {"mismatches", mismatches},
              {"worst", counted(worst_json(comparison))}};
  if (comparison.slice) report["slice"] = json_value(*comparison.slice);
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
