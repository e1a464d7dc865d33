#include "given_inputs.hpp"

#include "lnorm/core/axes.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

std::vector<double> numbers_of(const AffineTerm& term, const TensorInfo* info) {
  const std::int64_t count = info == nullptr ? 0 : element_count(info->shape);
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = *term.high(static_cast<std::int64_t>(i));
  }
  return numbers;
}

void check_variances(const AffineTerm& term, const TensorInfo& info) {
  for (std::int64_t position = 0; position < element_count(info.shape); ++position) {
    const double variance = *term.high(position);
    if (!(variance < 0)) continue;
    const std::string place =
        info.shape.empty() ? ""
                           : concat("element ", to_string(index_of(position, info.shape)), ' ');
    throw Error(concat(printable(info.name), ": ", place, "is ", variance,
                       ", expected a variance, 0 or more"));
  }
}

}  // namespace

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

const GivenStatistics& GivenInputs::of(const Plan& plan, const TensorInfo& x,
                                       const InputName& name) {
  check(x, name);
  if (mean_.is_unread()) mean_term_ = mean_.read();
  if (spread_.is_unread()) {
    spread_term_ = spread_.read();
    if (has_variance_) check_variances(spread_term_, *spread_.info());
  }
  statistics_ = {numbers_of(mean_term_.laid_out(plan.statistics), mean_.info()),
                 numbers_of(spread_term_.laid_out(plan.statistics), spread_.info()), is_rstd_,
                 plan.statistics};
  return statistics_;
}

}  // namespace lnorm::app
