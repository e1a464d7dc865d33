#include <algorithm>
#include <string>
#include <utility>

#include "lnorm/report/record.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm {

namespace {

std::vector<std::string> rounded_steps(const Explanation& e) {
  std::vector<std::string> steps;
  if (e.rounds_sum) steps.emplace_back("sum");
  if (e.options.rounding.xhat) steps.emplace_back("xhat");
  if (e.options.rounding.product) steps.emplace_back("product");
  return steps;
}

Record record_of(const Moments& moments) {
  return {{"sum", moments.sum},
          {"mean", moments.mean},
          {"variance", moments.variance},
          {"min", moments.min},
          {"max", moments.max}};
}

// The row has what a row of stats has, and more.
Record row_record(const Explanation& e) {
  const ExplainedRow& row = e.row;
  std::vector<Shape> non_finite;  // the first elements that are
  for (const std::int64_t element : row.non_finite) {
    non_finite.push_back(index_in_file(e.x, e.axes, e.number, element));
  }
  std::vector<Record> elements;
  for (const ExplainedElement& element : row.elements) elements.push_back(record_of(e, element));
  const bool is_rstd = row.given && row.given->rstd;
  return {{"row", e.number},
          {"index", index_of(e.number, row_shape(e.x.shape, e.axes))},
          {"row_length", row.length},
          {"non_finite", row.input.non_finite},
          {"non_finite_indices", non_finite},
          {"output_non_finite", row.output.non_finite},
          {"input", record_of(row.input)},
          {"given.mean", row.given ? Value(row.given->mean) : Absent()},
          {"given.rstd", is_rstd ? Value(row.given->rstd) : Absent()},
          {"given.variance", row.given && !is_rstd ? Value(row.variance) : Absent()},
          {"squares", row.squares},
          {e.options.formula.has_mean() ? "variance" : "mean_of_squares",
           Record{{"biased", row.biased}, {"unbiased", row.unbiased}, {"used", row.variance}}},
          {"divisor.eps_on_variance", row.divisor_on_variance},
          {"divisor.eps_on_std", row.divisor_on_std},
          {"divisor.without_eps", row.divisor_without_eps},
          {"eps_difference.max", row.eps_difference},
          {"eps_difference.element",
           row.eps_difference_at >= 0 ? Value(row.eps_difference_at) : Value()},
          {"xhat.mean_square", row.mean_square},
          {"output.mean", row.output.mean},
          {"output.variance", row.output.variance},
          {"softmax", record_of(row.softmax)},
          {"elements", std::move(elements)}};
}

}  // namespace

Record record_of(const Explanation& e, const ExplainedElement& element) {
  const auto if_there = [](bool is_there, double value) {
    return is_there ? Value(value) : Absent();
  };
  return {{"element", element.number},
          {"index", index_of(element.number, extents(e.x.shape, e.axes))},
          {"x", Element{element.x, e.row.dtype}, "x"},
          {"deviation", if_there(e.options.formula.has_mean(), element.deviation), "x - mean"},
          {"square", element.square, "square"},
          {"xhat", element.xhat, "xhat"},
          {"weight", if_there(e.weight, element.weight.high),
           e.options.zero_centered_weight ? "1 + weight" : "weight"},
          {"bias", if_there(e.bias, element.bias.high), "bias"},
          {"y", element.y, "y"},
          {"softmax", element.softmax, "softmax"}};
}

void write_json(const Explanation& e, ByteSink& bytes) {
  Record report = normalization_record(e.x, e.out, e.axes, e.options.formula);
  report.insert(report.end(), {{"weight", e.weight},
                               {"zero_centered_weight", e.options.zero_centered_weight},
                               {"bias", e.bias},
                               {"residual", e.residual},
                               {"round", rounded_steps(e)},
                               {"rows", std::vector<Record>{row_record(e)}}});
  write_json("explain", report, bytes);
}

}  // namespace lnorm
