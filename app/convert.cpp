#include "lnorm/kernel/convert.hpp"

#include <algorithm>
#include <cstdint>

#include "commands.hpp"
#include "companions.hpp"
#include "transform_inputs.hpp"

namespace lnorm::app {

namespace {

// An element is converted by itself: a row is as many of the last axes as make a block of some size.
NormalizedShape row_to_convert(const Shape& shape) {
  constexpr std::int64_t kMaxRow = 16384;
  auto first = shape.end();
  for (std::int64_t length = 1; first != shape.begin(); --first) {
    const std::int64_t extent = *(first - 1);
    if (extent > kMaxRow / std::max<std::int64_t>(1, length)) break;
    length *= extent;
  }
  return {{first, shape.end()}};
}

}  // namespace

int convert(const Arguments& arguments) {
  const auto transform = [](const RowsIn& x, const RowsOut& y, const RowNumbersOut&) {
    lnorm::convert(x, y);
  };
  const auto plan = [&](const TensorInfo& x) {
    return make_plan(x, {row_to_convert(x.shape), {}, false},
                     arguments.output.dtype.value_or(x.dtype),
                     {.whole = true, .in_tiles = true, .any_dtype = true});
  };
  return transform_inputs(open_inputs(arguments), arguments, plan, transform);
}

}  // namespace lnorm::app
