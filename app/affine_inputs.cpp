#include "affine_inputs.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/layout/reorder.hpp"

namespace lnorm::app {

void check_streams(const Ranks& ranks, const std::vector<std::string>& names) {
  std::set<std::pair<dev_t, ino_t>> pipes;
  bool has_standard_input = false;
  for (const std::string& name : names) {
    if (is_standard_input(name) && std::exchange(has_standard_input, true)) {
      throw Error("standard input is named for two inputs, expected one");
    }
    auto found = os::status(name);
    if (ranks.count() > 1 && (is_standard_input(name) ||
                              (found && !S_ISREG(found->st_mode) && !S_ISDIR(found->st_mode)))) {
      throw Error(concat(name == "-" ? "standard input" : printable(name),
                         ": ranks read at positions, expected a file"));
    }
    if (!found) found = os::status(name.substr(0, name.rfind(':')));
    if (found && S_ISFIFO(found->st_mode) && !pipes.emplace(found->st_dev, found->st_ino).second) {
      throw Error(
          concat(printable(name), ": is a pipe that is named for two inputs, expected one"));
    }
  }
}

void check_inputs(const InputArguments& input, const NormalizationArguments& arguments,
                  const WorkArguments& work, const std::vector<std::string>& others) {
  auto names = input.names;
  names.insert(names.end(), others.begin(), others.end());
  for (const auto& name : {arguments.weight, arguments.bias, arguments.residual, arguments.mean,
                           arguments.rstd, arguments.variance}) {
    if (name) names.push_back(*name);
  }
  check_streams(*work.ranks, names);
}

void AffineInput::find(const InputName& name) {
  if (auxiliary_ && auxiliary_->find(name)) is_read_ = false;
}

void AffineInput::check(const Plan& plan, const InputName& name) {
  find(name);
  if (auxiliary_) check_affine_shape(auxiliary_->info(), plan);
}

AffineTerm AffineInput::read() {
  const auto source = gathered(auxiliary_->open());
  AffineTerm term(source->info(), read_all(*source), plus_one_);
  auxiliary_->finish();
  is_read_ = true;
  return term;
}

AffineInputs::AffineInputs(const NormalizationArguments& arguments, const ReadOptions& input,
                           const ResidualInput& residual, double scale, const AuxiliaryInput* other)
    : as_(input.as),
      residual_(residual),
      other_(other),
      rounding_(arguments.options.rounding),
      scale_(scale),
      weight_("--weight", arguments.weight, input, arguments.options.zero_centered_weight),
      bias_("--bias", arguments.bias, input, false),
      affine_(make_affine({})) {}

void AffineInputs::check(const Plan& plan, const TensorInfo& x, const InputName& name) {
  if (rounding_.xhat || rounding_.product) check_rounding_dtype(plan.out);
  check_auxiliary_inputs(x, name, [&] {
    weight_.check(plan, name);
    bias_.check(plan, name);
  });
  if (as_ && !weight_.has_dtype(*as_) && !bias_.has_dtype(*as_) && !residual_.has_dtype(*as_) &&
      (other_ == nullptr || !other_->has_dtype(*as_))) {
    check_as(as_, x);
  }
}

Affine AffineInputs::make_affine(const AffineLayout& layout) {
  layout_ = layout;
  weight_laid_out_ = weight_term_.laid_out(layout);
  bias_laid_out_ = bias_term_.laid_out(layout);
  Affine affine = scale_ != 1 ? Affine(weight_laid_out_, bias_laid_out_, scale_)
                              : Affine(weight_laid_out_, bias_laid_out_, rounding_);
  if (!weight_term_.is_uniform() || !bias_term_.is_uniform()) affine.set_layout(layout);
  return affine;
}

const Affine& AffineInputs::of(const Plan& plan, const TensorInfo& x, const InputName& name) {
  check(plan, x, name);
  const bool other_weight = weight_.is_unread();
  const bool other_bias = bias_.is_unread();
  if (other_weight) weight_term_ = weight_.read();
  if (other_bias) bias_term_ = bias_.read();
  if (other_weight || other_bias || plan.affine != layout_) affine_ = make_affine(plan.affine);
  return affine_;
}

}  // namespace lnorm::app
