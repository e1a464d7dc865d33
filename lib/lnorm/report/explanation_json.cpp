#include <algorithm>
#include <string>
#include <utility>

#include "lnorm/report/json_value.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm {

namespace {

Json round_json(const Explanation& e) {
  Json steps = Json::array();
  if (e.rounds_sum) steps.push_back("sum");
  if (e.options.rounding.xhat) steps.push_back("xhat");
  if (e.options.rounding.product) steps.push_back("product");
  return steps;
}

Json head_json(const Explanation& e) {
  Json result = normalization_json("explain", e.x, e.out, e.axes, e.options.formula);
  result.update({{"weight", e.weight},
                 {"zero_centered_weight", e.options.zero_centered_weight},
                 {"bias", e.bias},
                 {"residual", e.residual},
                 {"round", round_json(e)}});
  return result;
}

Json element_json(const Explanation& e, const ExplainedElement& element) {
  Json result{{"element", element.number},
              {"index", index_of(element.number, extents(e.x.shape, e.axes))},
              {"x", json_value(element.x, e.row.dtype)}};
  if (e.options.formula.has_mean()) result["deviation"] = json_value(element.deviation);
  result["square"] = json_value(element.square);
  result["xhat"] = json_value(element.xhat);
  if (e.weight) result["weight"] = json_value(element.weight.high);
  if (e.bias) result["bias"] = json_value(element.bias.high);
  result["y"] = json_value(element.y);
  result["softmax"] = json_value(element.softmax);
  return result;
}

Json moments_json(const Moments& moments) {
  return {{"sum", json_value(moments.sum)},
          {"mean", json_value(moments.mean)},
          {"variance", json_value(moments.variance)},
          {"min", json_value(moments.min)},
          {"max", json_value(moments.max)}};
}

// Of the first elements that are not finite.
Json indices_json(const Explanation& e) {
  Json result = Json::array();
  for (const std::int64_t element : e.row.non_finite) {
    result.push_back(index_in_file(e.x, e.axes, e.number, element));
  }
  return result;
}

// The row has what a row of stats has, and more.
Json row_json(const Explanation& e) {
  const ExplainedRow& row = e.row;
  Json result{{"row", e.number},
              {"index", index_of(e.number, row_shape(e.x.shape, e.axes))},
              {"row_length", row.length},
              {"non_finite", row.input.non_finite},
              {"non_finite_indices", indices_json(e)},
              {"output_non_finite", row.output.non_finite},
              {"input", moments_json(row.input)}};
  if (row.given) {
    result["given"] = {{"mean", json_value(row.given->mean)},
                       {row.given->rstd ? "rstd" : "variance",
                        json_value(row.given->rstd.value_or(row.variance))}};
  }
  result["squares"] = json_value(row.squares);
  std::string variance(e.options.formula.norm().variance);
  std::replace(variance.begin(), variance.end(), ' ', '_');
  result[variance] = {{"biased", json_value(row.biased)},
                      {"unbiased", json_value(row.unbiased)},
                      {"used", json_value(row.variance)}};
  result["divisor"] = {{"eps_on_variance", json_value(row.divisor_on_variance)},
                       {"eps_on_std", json_value(row.divisor_on_std)},
                       {"without_eps", json_value(row.divisor_without_eps)}};
  const bool has_difference = row.eps_difference_at >= 0;
  result["eps_difference"] = {
      {"max", json_value(row.eps_difference)},
      {"element", has_difference ? Json(row.eps_difference_at) : Json(nullptr)}};
  result["xhat"] = {{"mean_square", json_value(row.mean_square)}};
  result["output"] = {{"mean", json_value(row.output.mean)},
                      {"variance", json_value(row.output.variance)}};
  result["softmax"] = moments_json(row.softmax);
  return result;
}

}  // namespace

void write_json(const Explanation& explanation, ByteSink& bytes) {
  Json result = head_json(explanation);
  Json row = row_json(explanation);
  row["elements"] = Json::array();
  for (const ExplainedElement& element : explanation.row.elements) {
    row["elements"].push_back(element_json(explanation, element));
  }
  result["rows"] = Json::array({std::move(row)});
  bytes.write(json_text(result) + '\n');
}

}  // namespace lnorm
