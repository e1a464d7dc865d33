#include "lnorm/report/comparison_csv.hpp"

#include <optional>
#include <string_view>

#include "lnorm/core/text.hpp"
#include "lnorm/report/csv_field.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

namespace {

constexpr std::string_view kHead =
    "name,result,actual_dtype,expected_dtype,actual_shape,expected_shape,elements,mismatched,"
    "greatest_absolute_difference,greatest_relative_difference,greatest_ulp_distance,"
    "non_finite_one_side,non_finite_differing,failed,pairs,equal_numbers,mean_error,"
    "mean_absolute_error,root_mean_square_error,cosine,sqnr_db,"
    "correctly_rounded,mean_error_toward_zero,mean_error_away_from_zero\n";
constexpr std::string_view kNoFigures = ",,,,,,,,,,,,,,,,,,";

std::string ulps_text(Ulps ulps) {
  return ulps.is_real ? value_text(ulps.value()) : std::to_string(ulps.rank);
}

std::string failed_criteria(const Comparison& c) {
  std::string names;
  for (const Failure& failure : c.failures()) {
    names += concat(names.empty() ? "" : " ", name(failure.criterion));
  }
  return names;
}

std::string figures(const Comparison& c) {
  if (!c.same_shape) return std::string(kNoFigures);
  const auto distance = [](const std::optional<Greatest<double>>& greatest) {
    return greatest ? value_text(greatest->value) : "";
  };
  const auto figure = [](const std::optional<double>& value) {
    return value ? value_text(*value) : "";
  };
  const ErrorStats& errors = c.errors;
  return concat(',', c.elements, ',', c.mismatched, ',', distance(c.absolute), ',',
                distance(c.relative), ',', c.ulps ? ulps_text(c.ulps->value) : "", ',',
                c.non_finite_one_side, ',', c.non_finite_differing, ',', failed_criteria(c), ',',
                errors.pairs(), ',', errors.equal_numbers(), ',', figure(errors.mean()), ',',
                figure(errors.mean_absolute()), ',', figure(errors.root_mean_square()), ',',
                figure(errors.cosine()), ',', figure(errors.sqnr()), ',',
                c.correctly_rounded() ? std::to_string(*c.correctly_rounded()) : "", ',',
                figure(errors.mean_toward_zero()), ',', figure(errors.mean_away_from_zero()));
}

std::string line_of(std::string_view name, const Comparison& c) {
  return concat(csv_field(name), c.equal() ? ",agree," : ",differ,", lnorm::name(c.actual.dtype),
                ',', lnorm::name(c.expected.dtype), ',', csv_field(to_string(c.actual.shape)), ',',
                csv_field(to_string(c.expected.shape)), figures(c), '\n');
}

// Of a tensor that has not been compared.
std::string line_of(std::string_view name, std::string_view result) {
  return concat(csv_field(name), ',', result, ",,,,", kNoFigures, '\n');
}

}  // namespace

std::string comparison_csv(const Comparison& comparison) {
  return concat(kHead, line_of(comparison.actual.name, comparison));
}

void write_comparison_csv(const SetComparison& set, ByteSink& bytes) {
  bytes.write(kHead);
  for (const PairComparison& pair : set.pairs) {
    bytes.write(pair.comparison ? line_of(pair.name, *pair.comparison)
                                : line_of(pair.name, "error"));
  }
  for (const std::string& name : set.actual_only) bytes.write(line_of(name, "actual_only"));
  for (const std::string& name : set.expected_only) bytes.write(line_of(name, "expected_only"));
}

}  // namespace lnorm
