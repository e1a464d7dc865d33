#include "open_input.hpp"

#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

Inputs::Inputs(const InputArguments& arguments)
    : Inputs(open_tensors(arguments.name, arguments.options), arguments) {}

Inputs::Inputs(TensorSequence tensors, const InputArguments& arguments)
    : tensors_(std::move(tensors)), options_(arguments.options) {}

std::optional<OpenedTensor> Inputs::next() {
  std::optional<OpenedTensor> input = tensors_.next();
  if (!input || !options_.as) return input;
  const TensorInfo& info = input->source->info();
  if (info.dtype == *options_.as) return input;
  throw Error(concat(printable(info.name), ": is ", name(info.dtype), ", found --as ",
                     name(*options_.as), ", which is for an .npy of dtype V2"));
}

}  // namespace lnorm::app
