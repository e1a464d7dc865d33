#include "lnorm/diagnosis/mutants.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "lnorm/core/interruption.hpp"

namespace lnorm {

namespace {

template <class List, class IsIt>
auto& found_or_added(List& list, IsIt is_it) {
  const auto found = std::find_if(list.begin(), list.end(), is_it);
  return found != list.end() ? *found : list.emplace_back();
}

void add_comparisons(const std::string& input, const std::vector<Comparison>& comparisons,
                     Mutant::Outcome& outcome) {
  const auto is_equal = [](const Comparison& one) { return one.equal(); };
  if (!std::all_of(comparisons.begin(), comparisons.end(), is_equal)) {
    outcome.caught_by.push_back(input);
  }
  for (const Comparison& one : comparisons) {
    outcome.mismatched += one.mismatched;
    outcome.elements += one.elements;
    if (!one.absolute) continue;
    outcome.max_abs = std::max(outcome.max_abs.value_or(0), one.absolute->value);
  }
}

}  // namespace

std::vector<TriedMutant> mutants_of(std::span<const KernelContext> contexts,
                                    const ChooseKernel& choose) {
  const KernelContext& any = contexts.front();
  // They share weight and bias, but for those that change these.
  std::vector<Variant> asked;
  for (const KernelContext& context : contexts) asked.push_back(asked_for(context.setting));
  std::vector<TriedMutant> result;
  for (const NamedKernel& kernel : named_kernels(any.of, any.setting.normalized_shape, choose)) {
    check_interruption();  // many kernels copy weight and bias, which takes long for long rows
    if (result.empty() || result.back().id != kernel.id) {
      result.push_back({kernel.id, kernel.words, kernel.options});
    }
    TriedMutant::Trial trial{kernel.row, any.of != Quantity::y};
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      const KernelContext& context = contexts[i];
      Variant variant = asked[i];
      const bool is_other = kernel.row->change(variant, context, kernel.parameter);
      // Of sums in any order only the noise is known: there is nothing to write.
      if (is_other && variant.backward.rounded != Backward::Rounded::terms)
        trial.formulas.emplace_back(context.of, variant);
    }
    if (!trial.formulas.empty()) result.back().trials.push_back(std::move(trial));
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

std::string Mutant::words() const {
  if (!is_equivalent() && !hardest().words.empty()) return hardest().words;
  if (is_equivalent() || hardest().row == nullptr) return first_words;
  // One row of the table stands for several lengths, and for both passes.
  const WrongKernel& row = *hardest().row;
  std::string words = row.id == id ? std::string(row.words) : first_words;
  if (hardest().is_backward && row.is_forward()) words += " in the backward pass";
  return words;
}

void MutantReport::add(const std::string& input, const std::vector<TriedMutant>& tried) {
  inputs_.push_back(input);
  for (const TriedMutant& one : tried) {
    Mutant& mutant = found_or_added(mutants_, [&](const Mutant& m) { return m.id == one.id; });
    if (mutant.id.empty()) {
      mutant.id = one.id;
      mutant.first_words = one.words;
      mutant.options = one.options;
    }
    for (const TriedMutant::Trial& trial : one.trials) {
      if (!criteria_) criteria_ = trial.comparisons.front().criteria;
      if (trial.has_scales) scale_criteria_ = trial.comparisons.back().criteria;
      Mutant::Outcome& outcome = found_or_added(mutant.outcomes, [&](const Mutant::Outcome& o) {
        return o.row == trial.row && o.is_backward == trial.is_backward && o.words == trial.words;
      });
      outcome.row = trial.row;
      outcome.is_backward = trial.is_backward;
      outcome.words = trial.words;
      add_comparisons(input, trial.comparisons, outcome);
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
