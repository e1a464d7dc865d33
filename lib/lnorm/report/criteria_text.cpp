#include "lnorm/report/criteria_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

namespace {

std::optional<double> bound_of(const Criteria& criteria, Criterion criterion) {
  switch (criterion) {
    case Criterion::max_ulp:
      return criteria.max_ulp;
    case Criterion::max_abs:
      return criteria.max_abs;
    case Criterion::max_mean_abs:
      return criteria.max_mean_abs;
    case Criterion::max_rmse:
      return criteria.max_rmse;
    case Criterion::min_cosine:
      return criteria.min_cosine;
    case Criterion::min_sqnr:
      return criteria.min_sqnr;
    default:
      return std::nullopt;
  }
}

// "max ulp 1", "tolerance rtol 0 + atol 1e-05"; empty if it was not given.
std::string text_of(const Criteria& criteria, Criterion criterion) {
  if (criterion == Criterion::tolerance && criteria.tolerance) {
    return concat("rtol ", value_text(criteria.tolerance->rtol), " + atol ",
                  value_text(criteria.tolerance->atol));
  }
  if (criterion == Criterion::max_mismatched && criteria.max_mismatched) {
    return "max mismatched " + mismatch_limit_text(*criteria.max_mismatched);
  }
  const std::optional<double> bound = bound_of(criteria, criterion);
  if (!bound) return "";
  std::string text(name(criterion));
  std::replace(text.begin(), text.end(), '_', ' ');
  return concat(text, ' ', value_text(*bound), criterion == Criterion::min_sqnr ? " dB" : "");
}

// Three digits, or as many as it takes to be on the same side of the bound.
std::string found_text(double found, double bound) {
  if (std::isnan(found)) return "none";
  const std::string text = rounded_text(found, 3);
  const double rounded = std::strtod(text.c_str(), nullptr);
  return (rounded > bound) == (found > bound) && rounded != bound ? text : value_text(found);
}

std::string elements_text(double count) {
  return counted(static_cast<long long>(count), "element");
}

}  // namespace

std::string criteria_text(const Criteria& criteria) {
  std::string text;
  const auto add = [&](const std::string& own, std::string_view between) {
    if (!own.empty()) text += concat(text.empty() ? "" : between, own);
  };
  add(text_of(criteria, Criterion::tolerance), "");
  if (criteria.max_ulp) add(value_text(*criteria.max_ulp) + " ulp", " and ");
  if (criteria.max_abs) add("abs " + value_text(*criteria.max_abs), " and ");
  for (const Criterion criterion :
       {Criterion::max_mismatched, Criterion::max_mean_abs, Criterion::max_rmse,
        Criterion::min_cosine, Criterion::min_sqnr}) {
    add(text_of(criteria, criterion), ", ");
  }
  return concat(criteria.bounds_elements() ? "tolerance " : "criteria ", text,
                criteria.equal_nan ? "" : ", NaN equals nothing");
}

std::string failures_text(const Criteria& criteria, const std::vector<Failure>& failures) {
  std::string text;
  for (const Failure& failure : failures) {
    if (!text.empty()) text += ", ";
    switch (failure.criterion) {
      case Criterion::finite:
        text += concat("NaN or infinity (", elements_text(failure.found), ")");
        break;
      case Criterion::tolerance:
        text += concat("tolerance (", elements_text(failure.found), ")");
        break;
      case Criterion::max_mismatched:
        text +=
            concat(text_of(criteria, failure.criterion), " (", elements_text(failure.found), ")");
        break;
      default:
        text += concat(text_of(criteria, failure.criterion), " (",
                       found_text(failure.found, *bound_of(criteria, failure.criterion)), ")");
    }
  }
  return text;
}

std::string mismatch_limit_text(const MismatchLimit& limit) {
  return concat(value_text(limit.value), limit.is_percentage ? "%" : "");
}

}  // namespace lnorm
