#include "residual_input.hpp"

#include <utility>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/summed_source.hpp"

namespace lnorm::app {

void check_rounding_dtype(DType out) {
  if (!is_float8(out)) return;
  throw Error(concat("--round is to the output dtype, found ", name(out), ", expected ",
                     dtype_list(is_larger_float)));
}

ResidualInput::ResidualInput(const NormalizationArguments& arguments, const ReadOptions& input)
    : rounds_(arguments.round_sum) {
  if (arguments.residual) auxiliary_.emplace("--residual", *arguments.residual, input);
}

TensorInfo ResidualInput::check(const TensorInfo& x, DType out, const InputName& name) {
  if (!auxiliary_) return x;
  if (rounds_) check_rounding_dtype(out);
  check_auxiliary_inputs(x, name, [&] { auxiliary_->find(name); });
  if (name.several && auxiliary_->is_read_once()) {
    throw Error(concat("--residual ", auxiliary_->word(),
                       " can be read for one input alone, found several"));
  }
  return sum_info(x, elements_beside(x, auxiliary_->info()), rounded_to(out));
}

std::unique_ptr<TensorSource> ResidualInput::add_to(std::unique_ptr<TensorSource> x, DType out,
                                                    int threads) {
  if (!auxiliary_) return x;
  auto residual = rows_beside(x->info(), auxiliary_->open());
  return summed(std::move(x), std::move(residual), rounded_to(out), threads);
}

std::unique_ptr<TensorSource> ResidualInput::again(const TensorInfo& x) {
  if (!auxiliary_ || !rounds_ || auxiliary_->is_read_once()) return nullptr;
  auto residual = rows_beside(x, auxiliary_->open());
  return residual->has_random_access() ? std::move(residual) : nullptr;
}

void ResidualInput::finish() const {
  if (auxiliary_) auxiliary_->finish();
}

}  // namespace lnorm::app
