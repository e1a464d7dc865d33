#include "observed_rows.hpp"

#include <utility>

namespace lnorm::app {

ObservedRows::ObservedRows(const Arguments& arguments, std::string_view lists_rows)
    : options_(arguments.normalization.options),
      lists_rows_(lists_rows),
      backend_(find_backend(arguments.normalization.kernel)),
      companions_(arguments) {}

Plan ObservedRows::check(const TensorInfo& x, const InputName& name) {
  Plan plan = companions_.plan(x, name);
  companions_.check(Companions::kGiven, x, name);
  plan.wants_empty_rows = !lists_rows_.empty();
  if (plan.wants_empty_rows) check_empty_rows(plan, x.name, concat(lists_rows_, " of"));
  companions_.check_affine(plan, x, name);
  return plan;
}

void ObservedRows::run(std::unique_ptr<TensorSource> input, const InputName& name, TensorWork& work,
                       const MakeObserver& observer) {
  const Plan plan = check(input->info(), name);
  const Affine& affine = companions_.affine(plan);
  const auto source = companions_.add_residual(std::move(input), plan.rounding, work.threads());
  const GivenStatistics* const given = companions_.given(plan);
  RowObserver* const observers[] = {&observer(plan)};
  lnorm::run(*source, plan, normalization(backend_, given, affine, plan.formula), observers,
             nullptr, work.begin(plan, *source, nullptr, backend_.name));
  work.end();
  companions_.finish();
}

void ObservedRows::describe(Stats& stats) const {
  stats.weight = companions_.has(TensorRole::weight);
  stats.zero_centered_weight = options_.zero_centered_weight;
  stats.bias = companions_.has(TensorRole::bias);
  if (companions_.has(TensorRole::rstd)) stats.given = Stats::Given::rstd;
  if (companions_.has(TensorRole::variance)) stats.given = Stats::Given::variance;
}

}  // namespace lnorm::app
