#include "observed_rows.hpp"

#include <utility>

namespace lnorm::app {

ObservedRows::ObservedRows(const InputArguments& input, const NormalizationArguments& normalization,
                           std::string_view lists_rows)
    : normalization_(normalization),
      lists_rows_(lists_rows),
      backend_(find_backend(normalization.kernel)),
      residual_(normalization, input.options),
      affine_inputs_(normalization, input.options, residual_),
      given_(normalization, input.options) {}

void ObservedRows::check(const TensorInfo& x, const InputName& name) {
  affine_inputs_.check(plan(x, name), x, name);
}

void ObservedRows::run(std::unique_ptr<TensorSource> input, const InputName& name, TensorWork& work,
                       const MakeObserver& observer) {
  const TensorInfo x = input->info();
  const Plan plan = this->plan(x, name);
  const Affine& affine = affine_inputs_.of(plan, x, name);
  const auto normalized = residual_.add_to(std::move(input), plan.out, work.threads());
  TensorSource& source = *normalized;
  const GivenStatistics* const given = given_.of(plan, x, name);
  RowObserver* const observers[] = {&observer(plan)};
  lnorm::run(source, plan, normalization(backend_, given, affine, plan.formula), observers, nullptr,
             work.begin(plan, source, nullptr, backend_.name));
  work.end();
  residual_.finish();
}

void ObservedRows::describe(Stats& stats) const {
  stats.weight = normalization_.weight.has_value();
  stats.zero_centered_weight = normalization_.options.zero_centered_weight;
  stats.bias = normalization_.bias.has_value();
  if (normalization_.rstd) stats.given = Stats::Given::rstd;
  if (normalization_.variance) stats.given = Stats::Given::variance;
}

Plan ObservedRows::plan(const TensorInfo& x, const InputName& name) {
  const DType out = output_dtype(x.dtype, {});
  Plan plan = make_plan(residual_.check(x, out, name), normalization_.options, out,
                        {.whole = true, .ordered = true});
  given_.check(x, name);
  plan.wants_empty_rows = !lists_rows_.empty();
  if (plan.wants_empty_rows) check_empty_rows(plan, x.name, concat(lists_rows_, " of"));
  return plan;
}

}  // namespace lnorm::app
