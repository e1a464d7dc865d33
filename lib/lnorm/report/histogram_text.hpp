#pragma once

#include <string>
#include <string_view>

#include "lnorm/measure/histogram.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// A title, bars side by side over the style's width, and the range under them: in block characters,
// or in ASCII where the style has no UTF-8. A bar that is not empty shows.
std::string histogram_text(std::string_view title, const Histogram& histogram, const Style& style);

}  // namespace lnorm
