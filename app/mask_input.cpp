#include "mask_input.hpp"

#include "lnorm/layout/reorder.hpp"

namespace lnorm::app {

void MaskInput::check(const TensorInfo& x, const InputName& name) {
  if (!auxiliary_) return;
  check_auxiliary_inputs(x, name, [&] {
    if (auxiliary_->find(name)) mask_.reset();
    check_mask(auxiliary_->info(), x);
  });
}

const std::shared_ptr<const Mask>& MaskInput::of(const TensorInfo& x, const InputName& name) {
  check(x, name);
  if (!auxiliary_ || mask_) return mask_;
  const auto source = gathered(auxiliary_->open());
  mask_ = std::make_shared<const Mask>(*source);
  source->finish();
  auxiliary_->finish();
  return mask_;
}

}  // namespace lnorm::app
