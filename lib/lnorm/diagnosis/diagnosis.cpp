#include "lnorm/diagnosis/diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/own_sums.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kFewest = 32;       // elements, for a formula to be called closer
constexpr std::size_t kFewestRows = 8;     // of different content
constexpr std::size_t kCombinedParts = 5;  // all but KernelPart::alone

// Rows of the table, and the formula that they make together.
struct Candidate {
  std::vector<const WrongKernel*> kernels;
  Variant variant;
};

using Fit = FormulaSums;

bool is_explained(const VariantRow& row, std::size_t i, const OutputFormat& output) {
  const double actual = row.actual[i];
  if (std::isfinite(actual)) {
    return row.is_bounded ? std::fabs(actual - row.y[i]) <= row.bound[i]
                          : actual == output.rounded(row.y[i]);
  }
  if (std::isnan(actual)) return std::isnan(row.y[i]) || std::isinf(row.bound[i]);
  return std::signbit(actual) == std::signbit(row.y[i]) &&
         output.overflows(std::fabs(row.y[i]) + (row.is_bounded ? row.bound[i] : 0));
}

class Search {
 public:
  Search(const Sample& sample, const KernelContext& context, const ChooseKernel& choose)
      : sample_(sample), context_(context), choose_(choose) {
    for (const WrongKernel& kernel : wrong_kernels()) {
      if (kernel.is_forward() && choose(kernel.id)) kernels_.push_back(&kernel);
    }
    exact_rows_.resize(sample.rows.size());
    const Variant exact = asked_for(context.setting);
    for (std::size_t r = 0; r < sample.rows.size(); ++r) {
      evaluate(exact, sample_, sample_.rows[r], exact_rows_[r]);
    }
    exact_ = fit(exact, false);
  }

  Diagnosis run(bool differs) {
    Diagnosis result;
    result.sqnr_of_exact = exact_.sqnr();
    const std::vector<Candidate> singles = single_rows(false);
    if (!differs) find_closer(singles, result);
    if (!differs && !result.closer_to) return result;
    explain(singles, result);
    for (std::size_t count = 2; count <= 3 && !result.explains_all(); ++count) {
      std::vector<Candidate> explaining;
      std::vector<const WrongKernel*> chosen;
      combine(0, count, chosen, explaining);
      explain(explaining, result);
    }
    explain_recovered(result);
    if (result.explains_all()) return result;
    // Sums that lose more than those of the arithmetic explain much: they are tried last.
    std::vector<Candidate> by_sums = single_rows(true);
    std::erase_if(by_sums, [&](const Candidate& one) { return !is_evident(one.variant, sample_); });
    explain(by_sums, result);
    return result;
  }

 private:
  // What the rows of the table make together; nothing where they cannot.
  std::optional<Candidate> combined(std::vector<const WrongKernel*> kernels) const {
    Candidate candidate{std::move(kernels), asked_for(context_.setting)};
    for (const WrongKernel* const kernel : candidate.kernels) {
      if (!kernel->change(candidate.variant, context_, kernel->parameter)) return {};
    }
    if (!goes_with_given(candidate.variant)) return {};
    return candidate;
  }

  // Each row of the table alone: those of own sums, or the others.
  std::vector<Candidate> single_rows(bool own_sums) const {
    std::vector<Candidate> result;
    for (const WrongKernel* const kernel : kernels_) {
      if ((kernel->part == KernelPart::own_sums) != own_sums) continue;
      if (auto candidate = combined({kernel})) result.push_back(*std::move(candidate));
    }
    return result;
  }

  // If statistics are given, a kernel has no sums that may be wrong.
  bool goes_with_given(const Variant& v) const {
    if (!context_.has_given || v.own_statistics) return true;
    const Formula& asked = context_.setting.formula;
    const bool has_sums = v.of != Variant::Of::own_row || v.of_first > 0 || v.padded_to > 0 ||
                          v.squares_about_zero || v.has_own_sums();
    const bool is_of_row = v.result != Variant::Result::previous_row &&
                           v.result != Variant::Result::next_row &&
                           v.result != Variant::Result::twice;
    return !has_sums && is_of_row && v.formula.ddof == asked.ddof && v.formula.rms == asked.rms &&
           (!context_.has_given_rstd ||
            (v.formula.eps == asked.eps && v.formula.eps_on == asked.eps_on));
  }

  Fit fit(const Variant& variant, bool all_or_nothing) const {
    Fit result;
    for (const SampleRow& sampled : sample_.rows) {
      add_fit(variant, sample_, sampled, row_, result, all_or_nothing);
      if (all_or_nothing && !result.explains_all()) break;
    }
    return result;
  }

  bool is_explanation(const Fit& fit) const {
    return fit.explains_all() && fit.certain > 0 && 2 * fit.certain >= fit.elements - fit.lost &&
           fit.excess <= exact_.excess / 4;
  }

  FormulaFit described(const Candidate& candidate, const Fit& fit) const {
    FormulaFit result = lnorm::described(candidate.kernels, fit, is_explanation(fit));
    result.variant = candidate.variant;
    return result;
  }

  // Whether two formulas give the same rows, but for what rounding explains.
  bool are_alike(const Variant& a, const Variant& b) const {
    VariantRow& left = row_;
    VariantRow right;
    for (const SampleRow& sampled : sample_.rows) {
      const bool has_left = evaluate(a, sample_, sampled, left);
      if (has_left != evaluate(b, sample_, sampled, right)) return false;
      if (has_left && !lnorm::are_alike(left, right)) return false;
    }
    return true;
  }

  // Takes what explains all elements, or else the best.
  void explain(const std::vector<Candidate>& candidates, Diagnosis& result) const {
    std::vector<std::pair<Fit, const Candidate*>> found;
    found.reserve(candidates.size());
    for (const Candidate& candidate : candidates) {
      found.emplace_back(fit(candidate.variant, false), &candidate);
    }
    std::ranges::stable_sort(found, {}, [&](const auto& one) {
      return std::pair(!is_explanation(one.first), sum_of_squares(one.first));
    });
    std::vector<FormulaFit> fits;
    if (!found.empty() && is_explanation(found.front().first)) {
      fits.push_back(named_together(found));
    }
    for (const auto& [fit, candidate] : found) {
      if (!std::isfinite(fit.sqnr()) || fits.size() == kMaxExplanations) continue;
      fits.push_back(described(*candidate, fit));
    }
    fits.insert(fits.end(), std::make_move_iterator(result.explanations.begin()),
                std::make_move_iterator(result.explanations.end()));
    keep_best(fits);
    result.explanations = std::move(fits);
  }

  // The best explanation and those that the input cannot tell from it, which leave the list. The first one of the table
  // gives the name.
  FormulaFit named_together(std::vector<std::pair<Fit, const Candidate*>>& found) const {
    const Candidate* best = found.front().second;
    const auto alike = std::stable_partition(found.begin(), found.end(), [&](const auto& one) {
      return !is_explanation(one.first) || !are_alike(best->variant, one.second->variant);
    });
    const auto first = std::min_element(
        alike, found.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    FormulaFit result = described(*first->second, first->first);
    for (auto other = alike; other != found.end(); ++other) {
      const std::string id = described(*other->second, other->first).id;
      if (id != result.id) result.same_as.push_back(id);
    }
    found.erase(alike, found.end());
    return result;
  }

  // Formulas with results for some rows alone come last.
  static double sum_of_squares(const Fit& fit) {
    return fit.elements == 0 ? kInfinity : fit.errors / static_cast<double>(fit.elements);
  }

  // Several rows of the table at once, of different parts.
  void combine(std::size_t part, std::size_t count, std::vector<const WrongKernel*>& chosen,
               std::vector<Candidate>& explaining) const {
    if (chosen.size() == count) {
      auto candidate = combined(chosen);
      if (candidate && is_explanation(fit(candidate->variant, true))) {
        explaining.push_back(*std::move(candidate));
      }
      return;
    }
    for (; part < kCombinedParts; ++part) {
      for (const WrongKernel* const kernel : kernels_) {
        if (static_cast<std::size_t>(kernel->part) != part) continue;
        chosen.push_back(kernel);
        combine(part + 1, count, chosen, explaining);
        chosen.pop_back();
      }
    }
  }

  RowFit fit_of(const SampleRow& row, const VariantRow& exact, double mean, double s) const {
    return fit_errors(row.x, weight_of(row, context_.setting), mean, s, row.actual, exact.y,
                      row.kept);
  }

  // ---- Numbers that the output itself tells.

  // Tries the eps and the divisor of the variance that the rows' own scales tell.
  void explain_recovered(Diagnosis& result) const {
    const Formula& formula = context_.setting.formula;
    if (formula.eps_on == EpsOn::std || context_.has_given) return;
    std::vector<double> epses;
    std::vector<double> divisors;
    for (std::size_t r = 0; r < sample_.rows.size(); ++r) {
      const SampleRow& row = sample_.rows[r];
      const RowStatistics statistics = lnorm::statistics_of(row.x, formula);
      const double s = divisor_of(statistics.variance, formula);
      if (!(s > 0)) continue;
      const RowFit found = fit_of(row, exact_rows_[r], statistics.mean, s);
      if (!found.is_known || !(found.scale > -1)) continue;
      const double kernel_s = s / (1 + found.scale);
      const double square = kernel_s * kernel_s;
      const double freedom = statistics.count - static_cast<double>(formula.ddof);
      epses.push_back(square - statistics.variance);
      divisors.push_back(freedom * statistics.variance / (square - formula.eps));
    }
    if (epses.size() < 2) return;
    const auto median = [](std::vector<double>& numbers) {
      const auto middle = numbers.begin() + std::ssize(numbers) / 2;
      std::nth_element(numbers.begin(), middle, numbers.end());
      return *middle;
    };
    const double divisor = std::round(median(divisors));
    if (divisor >= 1 && std::fabs(divisor) < 0x1p53) {
      Variant variant = asked_for(context_.setting);
      variant.formula.ddof = context_.row_length() - static_cast<std::int64_t>(divisor);
      if (take_recovered(concat("divisor=", static_cast<std::int64_t>(divisor)),
                         "the variance is divided by another number", variant, result)) {
        return;
      }
    }
    // The shortest decimal that will do.
    const double eps = median(epses);
    for (int digits = 1; digits <= 3 && eps > 0 && eps <= 1; ++digits) {
      Variant variant = asked_for(context_.setting);
      std::ostringstream text;
      text.precision(digits);
      text << eps;
      variant.formula.eps = std::stod(text.str());
      // A number that is in the table has its name there.
      const auto row = std::find_if(kernels_.begin(), kernels_.end(), [&](const WrongKernel* one) {
        return one->part == KernelPart::eps_value && one->parameter == variant.formula.eps;
      });
      const std::string id = row != kernels_.end() ? std::string((*row)->id) : "eps=" + text.str();
      if (take_recovered(id, "eps is another number", variant, result, eps_option(text.str()))) {
        return;
      }
    }
  }

  bool take_recovered(const std::string& id, const std::string& words, const Variant& variant,
                      Diagnosis& result, const std::string& option = "") const {
    const Fit found = fit(variant, false);
    if (!choose_(id) || !is_explanation(found)) return false;
    // A row of the table that explains as well says more.
    constexpr double kFarNearer = 16;
    if (result.explains_all() &&
        !(found.errors * kFarNearer < fit(result.explanations.front().variant, false).errors)) {
      return false;
    }
    FormulaFit next{.id = id,
                    .words = words,
                    .explained = found.share(),
                    .sqnr = found.sqnr(),
                    .explains_all = true,
                    .variant = variant};
    if (!option.empty()) next.options.push_back(option);
    result.explanations.insert(result.explanations.begin(), std::move(next));
    return true;
  }

  // ---- What is closer.

  struct Nearness {
    std::int64_t telling = 0;
    std::int64_t closer = 0;
    bool is_closer = false;
    bool is_sure = false;  // there are rows enough
  };

  // What a right kernel may come nearest with: mean and s as far off as rounding explains, if that helps; and how far off a
  // tree of additions may be before the last rounding.
  RowBounds nearest_right(const SampleRow& row, const VariantRow& exact,
                          const RowStatistics& statistics, double s) const {
    const JudgeSetting& setting = context_.setting;
    const auto errors = [&](Summation order) {
      return errors_of(statistics, setting.formula, setting.kernel, order);
    };
    const StatisticErrors tree = errors(Summation::tree);
    const double most_shift = errors(Summation::loop).mean / s;
    const double most_scale = tree.s / s;
    const RowFit found = fit_of(row, exact, statistics.mean, s);
    const double shift = std::clamp(found.shift, -most_shift, most_shift);
    const double scale = std::clamp(found.scale, -most_scale, most_scale);
    RowBounds result{exact.y, exact.y};
    const std::vector<double>& weight = weight_of(row, setting);
    fill_line(line_of(statistics, s, tree, setting.kernel), row.x.data(), weight.data(),
              bias_of(row, setting).data(), std::ssize(row.x), result.y.data(),
              result.bound.data());
    for (std::size_t i = 0; i < result.y.size(); ++i) {
      result.y[i] = exact.y[i] + weight[i] * (shift + scale * (row.x[i] - statistics.mean) / s);
    }
    return result;
  }

  Nearness nearness(const Variant& variant) const {
    const JudgeSetting& setting = context_.setting;
    const auto& [unit, smallest, greatest] = setting.kernel.arithmetic;
    const bool is_narrower = !setting.is_wide();
    const double factor = is_narrower ? 8 : 32;
    Nearness result;
    std::set<std::vector<double>> contents;
    VariantRow row;
    for (std::size_t r = 0; r < sample_.rows.size(); ++r) {
      const SampleRow& sampled = sample_.rows[r];
      const VariantRow& exact = exact_rows_[r];
      if (!exact.is_bounded || !evaluate(variant, sample_, sampled, row)) continue;
      if (variant.bytes != Variant::Bytes::as_they_are) continue;
      const RowStatistics statistics = statistics_of(sampled.x, setting.formula, sampled.given);
      const double s = divisor_of(statistics.variance, setting.formula);
      const RowBounds reached = nearest_right(sampled, exact, statistics, s);
      std::int64_t telling = 0;
      for (std::size_t i = 0; i < row.y.size(); ++i) {
        if (std::isinf(row.bound[i]) || !sampled.is_kept(i)) continue;
        if (!(std::fabs(row.y[i] - exact.y[i]) > reached.bound[i])) continue;
        const double e = setting.output.rounded(exact.y[i]);
        const double nearest = setting.output.rounded(reached.y[i]);
        const double f = setting.output.rounded(row.y[i]);
        const double least =
            factor * (unit * std::fabs(exact.y[i]) +
                      smallest * (std::fabs(weight_of(sampled, setting)[i]) / s + 1));
        if (!(std::fabs(e - f) > least) || !(std::fabs(nearest - f) > least)) continue;
        ++telling;
        const double actual = sampled.actual[i];
        result.closer += static_cast<std::int64_t>(
            is_narrower ? actual == f
                        : 3 * std::fabs(actual - row.y[i]) <= std::fabs(actual - reached.y[i]));
      }
      result.telling += telling;
      if (telling > 0) contents.insert(sampled.actual);
    }
    result.is_closer = result.telling >= kFewest && result.closer * 10 > result.telling * 9;
    result.is_sure = contents.size() >= kFewestRows;
    return result;
  }

  void find_closer(const std::vector<Candidate>& candidates, Diagnosis& result) const {
    double least = kInfinity;
    for (const Candidate& candidate : candidates) {
      const Nearness found = nearness(candidate.variant);
      if (!found.is_closer || (result.closer_to && !found.is_sure)) continue;
      const double squares = sum_of_squares(fit(candidate.variant, false));
      const bool is_first_sure = found.is_sure && !result.closer_to;
      if (squares >= least && !is_first_sure) continue;
      least = squares;
      (found.is_sure ? result.closer_to : result.perhaps_closer) = described(candidate, {}).id;
      result.telling = found.telling;
      result.closer = found.closer;
    }
  }

  const Sample& sample_;
  const KernelContext& context_;
  const ChooseKernel& choose_;
  std::vector<const WrongKernel*> kernels_;
  std::vector<VariantRow> exact_rows_;
  mutable VariantRow row_;  // a buffer: rows may be long
  Fit exact_;
};

}  // namespace

double FormulaSums::share() const {
  return elements == 0 ? 0 : static_cast<double>(explained) / static_cast<double>(elements);
}

double FormulaSums::sqnr() const { return 10 * std::log10(signal / errors); }

void FormulaSums::add(const FormulaSums& other) {
  elements += other.elements;
  explained += other.explained;
  certain += other.certain;
  lost += other.lost;
  signal += other.signal;
  errors += other.errors;
  excess += other.excess;
}

void add_fit(const Variant& variant, const Sample& sample, const SampleRow& row, VariantRow& result,
             FormulaSums& sums, bool all_or_nothing) {
  if (!evaluate(variant, sample, row, result)) return;
  add_results(result, sample.setting->output, sums, all_or_nothing);
}

void add_results(const VariantRow& result, const OutputFormat& output, FormulaSums& sums,
                 bool all_or_nothing) {
  for (std::size_t i = 0; i < result.y.size(); ++i) {
    if (!result.kept.empty() && result.kept[i] == 0) continue;
    ++sums.elements;
    const bool explains = is_explained(result, i, output);
    sums.explained += static_cast<std::int64_t>(explains);
    // Bytes in another order are nearly 0 as a rule, which is within the bound of 0.
    const bool is_certain = std::isfinite(result.bound[i]) &&
                            (!result.is_reread || std::fabs(result.y[i]) > result.bound[i]);
    sums.certain += static_cast<std::int64_t>(explains && is_certain);
    sums.lost += static_cast<std::int64_t>(explains && std::isnan(result.y[i]));
    if (all_or_nothing && !explains) return;
    const double error = std::fabs(result.actual[i] - result.y[i]);
    if (!std::isfinite(error) || std::isinf(result.bound[i])) continue;
    sums.signal += result.y[i] * result.y[i];
    sums.errors += error * error;
    const double excess = error - output.half_ulp(result.y[i]);
    if (excess > 0) sums.excess += excess * excess;
  }
}

bool needs_more_than_row(const Variant& variant) {
  return variant.of != Variant::Of::own_row || variant.input != Variant::Input::sum ||
         variant.result == Variant::Result::previous_row ||
         variant.result == Variant::Result::next_row;
}

void keep_best(std::vector<FormulaFit>& explanations) {
  std::stable_sort(explanations.begin(), explanations.end(),
                   [](const FormulaFit& a, const FormulaFit& b) {
                     if (a.explains_all != b.explains_all) return a.explains_all;
                     return !a.explains_all && a.sqnr > b.sqnr;
                   });
  if (explanations.size() > kMaxExplanations) explanations.resize(kMaxExplanations);
}

FormulaFit described(const std::vector<const WrongKernel*>& kernels, const FormulaSums& sums,
                     bool explains_all) {
  FormulaFit result{.explained = sums.share(), .sqnr = sums.sqnr(), .explains_all = explains_all};
  const auto all = [&](std::string_view between, std::string_view WrongKernel::*text) {
    return joined(kernels, between, [&](const WrongKernel* kernel) { return kernel->*text; });
  };
  result.id = all("+", &WrongKernel::id);
  result.words = all("; ", &WrongKernel::words);
  for (const WrongKernel* const kernel : kernels) result.options.emplace_back(kernel->options);
  // Part of the options gives something else.
  if (std::count(result.options.begin(), result.options.end(), "") > 0) result.options.clear();
  return result;
}

bool are_alike(const RowBounds& left, const RowBounds& right) {
  for (std::size_t i = 0; i < left.y.size(); ++i) {
    if (std::fabs(left.y[i] - right.y[i]) > left.bound[i] + right.bound[i]) return false;
  }
  return true;
}

Diagnosis diagnose(const Sample& sample, const KernelContext& context, const ChooseKernel& choose,
                   bool differs) {
  return Search(sample, context, choose).run(differs);
}

}  // namespace lnorm
