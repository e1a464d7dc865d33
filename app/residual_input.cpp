#include "residual_input.hpp"

#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/summed_source.hpp"

namespace lnorm::app {

ResidualInput::ResidualInput(const NormalizationArguments& arguments, std::optional<DType> as)
    : rounds_(arguments.round_sum) {
  if (arguments.residual) companion_.emplace("--residual", *arguments.residual, as);
}

TensorInfo ResidualInput::check(const TensorInfo& x, DType out, const InputName& name) {
  if (!companion_) return x;
  check_companions(x, name, [&] { companion_->find(name); });
  if (name.several && companion_->is_read_once()) {
    throw Error(concat("--residual ", companion_->word(),
                       " can be read for one input alone, found several"));
  }
  return sum_info(x, companion_->info(), rounded_to(out));
}

std::unique_ptr<TensorSource> ResidualInput::add_to(std::unique_ptr<TensorSource> x, DType out,
                                                    int threads) {
  if (!companion_) return x;
  return summed(std::move(x), companion_->open(), rounded_to(out), threads);
}

void ResidualInput::finish() const {
  if (companion_) companion_->finish();
}

}  // namespace lnorm::app
