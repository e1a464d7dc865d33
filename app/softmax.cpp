#include "lnorm/kernel/softmax.hpp"

#include "commands.hpp"
#include "companions.hpp"
#include "transform_inputs.hpp"

namespace lnorm::app {

int softmax(const Arguments& arguments) {
  const double scale = arguments.output.scale.value_or(1);
  const auto transform = [=](const RowsIn& x, const RowsOut& y, const RowNumbersOut&) {
    lnorm::softmax(x, y, scale);
  };
  const auto plan = [&](const TensorInfo& x) {
    return make_plan(x, {arguments.normalization.options.axes, {}, false}, arguments.output.dtype,
                     {.whole = true, .in_tiles = true});
  };
  const Inputs inputs = open_inputs(arguments);
  check_named(inputs);
  return transform_inputs(inputs, arguments, plan, transform);
}

}  // namespace lnorm::app
