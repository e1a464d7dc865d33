#include "lnorm/diagnosis/gradient_diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lnorm {

namespace {

using Trial = GradientTrial;

class GradientSearch {
 public:
  GradientSearch(const GradientSample& sample, const GradientContext& context,
                 const ChooseKernel& choose)
      : sample_(sample), context_(context), exact_(fit(sample.exact)) {
    for (const WrongKernel& kernel : wrong_kernels()) {
      if (kernel.is_backward() && choose(kernel.id)) kernels_.push_back(&kernel);
    }
    result_.diagnosis.sqnr_of_exact = exact_.sqnr();
  }

  GradientDiagnosis run() {
    for (const bool is_coarse : {false, true}) {
      for (const std::size_t count : {1U, 2U}) {
        std::vector<Trial> trials;
        add_trials(count, is_coarse, trials);
        if (trials.empty()) continue;
        sample_.fill(trials);
        take(trials);
        if (result_.diagnosis.explains_all()) return std::move(result_);
      }
    }
    return std::move(result_);
  }

 private:
  void add_trials(std::size_t count, bool is_coarse, std::vector<Trial>& trials) const {
    const auto add = [&](std::vector<const WrongKernel*> kernels) {
      Trial trial{std::move(kernels), asked_for(context_.model)};
      for (const WrongKernel* const kernel : trial.kernels) {
        if (!kernel->change_gradient(trial.variant, context_, kernel->parameter)) return;
      }
      if (trial.variant.is_any_order == is_coarse) trials.push_back(std::move(trial));
    };
    for (const WrongKernel* const first : kernels_) {
      if (count == 1) add({first});
      for (const WrongKernel* const second : kernels_) {
        if (count == 2 && second->part > first->part) add({first, second});
      }
    }
  }

  FormulaSums fit(const std::vector<RowBounds>& rows) const {
    FormulaSums sums;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      add_results({rows[r], sample_.actual[r]}, context_.model.setting.output, sums);
    }
    return sums;
  }

  // The bound of sums in a narrow dtype covers much: they must come near to it.
  bool is_coarse_enough(const Trial& trial) const {
    if (!trial.variant.is_any_order) return true;
    constexpr double kNear = 0.05;
    for (std::size_t r = 0; r < trial.rows.size(); ++r) {
      const RowBounds& row = trial.rows[r];
      for (std::size_t i = 0; i < row.y.size(); ++i) {
        if (std::fabs(sample_.actual[r][i] - row.y[i]) >= kNear * row.bound[i]) return true;
      }
    }
    return false;
  }

  bool is_explanation(const Trial& trial, const FormulaSums& sums) const {
    return sums.explains_all() && sums.excess <= exact_.excess / 4 && is_coarse_enough(trial);
  }

  // Those that explain all come first, and the best of them.
  void take(const std::vector<Trial>& trials) {
    std::vector<std::pair<FormulaFit, const Trial*>> fits;
    for (const Trial& trial : trials) {
      const FormulaSums sums = fit(trial.rows);
      // Without any error it is infinite.
      const bool has_sqnr = sums.sqnr() > 0 || std::isfinite(sums.sqnr());
      if (!has_sqnr) continue;
      fits.emplace_back(described(trial.kernels, sums, is_explanation(trial, sums)), &trial);
    }
    std::ranges::stable_sort(fits, {}, [](const auto& one) {
      return std::pair(!one.first.explains_all, -one.first.sqnr);
    });
    std::vector<FormulaFit>& found = result_.diagnosis.explanations;
    for (auto& [fit, trial] : fits) {
      const bool is_first = trial == fits.front().second;
      FormulaFit* const best = found.empty() ? nullptr : &found.front();
      if (is_first && fit.explains_all) {
        found.insert(found.begin(), std::move(fit));
        result_.best = trial->variant;
      } else if (best != nullptr && best->explains_all && fit.explains_all &&
                 std::ranges::equal(fits.front().second->rows, trial->rows, are_alike)) {
        if (fit.id != best->id) best->same_as.push_back(fit.id);
      } else {
        found.push_back(std::move(fit));
      }
    }
    keep_best(found);
  }

  const GradientSample& sample_;
  const GradientContext& context_;
  FormulaSums exact_;
  std::vector<const WrongKernel*> kernels_;
  GradientDiagnosis result_;
};

}  // namespace

GradientDiagnosis diagnose(const GradientSample& sample, const GradientContext& context,
                           const ChooseKernel& choose) {
  return GradientSearch(sample, context, choose).run();
}

}  // namespace lnorm
