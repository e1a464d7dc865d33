#include "observed_rows.hpp"

#include <utility>

#include "lnorm/report/numbers.hpp"

namespace lnorm::app {

ObservedRows::ObservedRows(const Arguments& arguments, std::string_view lists_rows)
    : Companions(arguments),
      options_(arguments.normalization.options),
      rounds_sum_(arguments.normalization.round_sum),
      lists_rows_(lists_rows),
      backend_(find_backend(arguments.normalization.kernel)) {}

Plan ObservedRows::check(const TensorInfo& x, const InputName& name) {
  Plan plan = Companions::plan(x, name);
  Companions::check(kGiven, x, name);
  plan.wants_empty_rows = !lists_rows_.empty();
  if (plan.wants_empty_rows) check_empty_rows(plan, x.name, concat(lists_rows_, " of"));
  check_affine(plan, x, name);
  return plan;
}

void ObservedRows::run(std::unique_ptr<TensorSource> input, const InputName& name, TensorWork& work,
                       const MakeObserver& observer) {
  const Plan plan = check(input->info(), name);
  const Affine& affine = Companions::affine(plan);
  const auto source = add_residual(std::move(input), plan.rounding, work.threads());
  const GivenStatistics* const given = Companions::given(plan);
  RowObserver* const observers[] = {&observer(plan)};
  lnorm::run(*source, plan, normalization(backend_, given, affine, plan.formula), observers,
             nullptr, work.begin(plan, *source, nullptr, backend_.name));
  work.end();
  finish();
}

void ObservedRows::describe(Stats& stats) const {
  stats.weight = has(TensorRole::weight);
  stats.zero_centered_weight = options_.zero_centered_weight;
  stats.bias = has(TensorRole::bias);
  stats.residual = has(TensorRole::residual);
  stats.mask = has(TensorRole::mask);
  stats.rounded = rounded_steps(rounds_sum_, options_.rounding);
  if (has(TensorRole::rstd)) stats.given = Stats::Given::rstd;
  if (has(TensorRole::variance)) stats.given = Stats::Given::variance;
}

}  // namespace lnorm::app
