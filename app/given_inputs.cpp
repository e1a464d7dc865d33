#include "given_inputs.hpp"

namespace lnorm::app {

GivenInputs::GivenInputs(const NormalizationArguments& arguments, const ReadOptions& input)
    : axes_(arguments.options.axes),
      is_rstd_(arguments.rstd.has_value()),
      has_variance_(arguments.variance.has_value()),
      mean_("--mean", arguments.mean, input, false),
      spread_(is_rstd_ ? "--rstd" : "--variance", is_rstd_ ? arguments.rstd : arguments.variance,
              input, false) {}

void GivenInputs::check(const TensorInfo& x, const InputName& name) {
  if (!are_given()) return;
  check_auxiliary_inputs(x, name, [&] {
    for (AffineInput* const input : {&mean_, &spread_}) {
      input->find(name);
      const TensorInfo* const info = input->info();
      if (info != nullptr && !info->shape.empty()) check_row_numbers(*info, x, axes_);
    }
  });
}

const GivenStatistics* GivenInputs::of(const Plan& plan, const TensorInfo& x,
                                       const InputName& name) {
  if (!are_given()) return nullptr;
  check(x, name);
  if (mean_.is_unread()) mean_term_ = mean_.read();
  if (spread_.is_unread()) spread_term_ = spread_.read();
  statistics_ = given_statistics(mean_term_, spread_term_, *spread_.info(), is_rstd_, plan);
  return &statistics_;
}

}  // namespace lnorm::app
