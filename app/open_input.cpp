#include "open_input.hpp"

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

OpenedTensor open_input(const InputArguments& input) {
  OpenedTensor opened = open_tensor(input.name, input.options);
  check_as(opened.source->info(), input.options);
  return opened;
}

void check_as(const TensorInfo& info, const ReadOptions& options) {
  if (!options.as || info.dtype == *options.as) return;
  throw Error(concat(printable(info.name), ": is ", name(info.dtype), ", found --as ",
                     name(*options.as), ", which is for an .npy of dtype V2"));
}

}  // namespace lnorm::app
