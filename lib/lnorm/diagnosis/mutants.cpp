#include "lnorm/diagnosis/mutants.hpp"

#include <algorithm>
#include <cstddef>

namespace lnorm {

std::vector<MutantFormulas> mutants_of(const KernelContext& context, const ChooseKernel& choose) {
  std::vector<MutantFormulas> result;
  for (const WrongKernel& kernel : wrong_kernels()) {
    if (!kernel.is_forward() || (choose && !choose(kernel.id))) continue;
    if (result.empty() || result.back().id != kernel.id) {
      result.push_back({.id = std::string(kernel.id),
                        .words = std::string(kernel.words),
                        .options = std::string(kernel.options),
                        .variants = {}});
    }
    Variant variant = asked_for(context.setting);
    if (!kernel.change(variant, context, kernel.parameter)) continue;
    result.back().variants.push_back(std::move(variant));
  }
  return result;
}

const Mutant::Outcome& Mutant::hardest() const {
  return *std::min_element(outcomes.begin(), outcomes.end(),
                           [](const Outcome& a, const Outcome& b) {
                             const std::size_t by_a = a.caught_by.size();
                             const std::size_t by_b = b.caught_by.size();
                             return by_a != by_b ? by_a < by_b : a.mismatched < b.mismatched;
                           });
}

Mutant& MutantReport::mutant_of(const MutantFormulas& formulas) {
  const auto found = std::find_if(mutants_.begin(), mutants_.end(),
                                  [&](const Mutant& one) { return one.id == formulas.id; });
  if (found != mutants_.end()) return *found;
  return mutants_.emplace_back(Mutant{
      .id = formulas.id, .words = formulas.words, .options = formulas.options, .outcomes = {}});
}

void MutantReport::add(const std::string& input, const std::vector<TriedMutant>& tried) {
  inputs_.push_back(input);
  for (const TriedMutant& one : tried) {
    Mutant& mutant = mutant_of(one.formulas);
    mutant.outcomes.resize(std::max(mutant.outcomes.size(), one.comparisons.size()));
    for (std::size_t i = 0; i < one.comparisons.size(); ++i) {
      const Comparison& comparison = one.comparisons[i];
      if (inputs_.size() == 1) criteria_ = comparison.criteria;
      Mutant::Outcome& outcome = mutant.outcomes[i];
      if (!comparison.equal()) outcome.caught_by.push_back(input);
      outcome.mismatched += comparison.mismatched;
      outcome.elements += comparison.elements;
      if (!comparison.absolute) continue;
      outcome.max_abs = std::max(outcome.max_abs.value_or(0), comparison.absolute->value);
    }
  }
}

std::int64_t MutantReport::tried() const {
  return std::count_if(mutants_.begin(), mutants_.end(),
                       [](const Mutant& mutant) { return !mutant.is_equivalent(); });
}

std::vector<const Mutant*> MutantReport::survivors() const {
  std::vector<const Mutant*> result;
  for (const Mutant& mutant : mutants_) {
    if (mutant.survives()) result.push_back(&mutant);
  }
  return result;
}

}  // namespace lnorm
