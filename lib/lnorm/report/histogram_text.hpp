#pragma once

#include <string>
#include <string_view>

#include "lnorm/measure/histogram.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// A title with the number of elements and their range in that many significant digits, bars over the
// style's width with the count of the highest beside it, an axis with ticks under them, and at its
// margins what lies outside. In block characters, or in ASCII where the style has no UTF-8. A bar that
// is not empty shows.
std::string histogram_text(std::string_view title, const Histogram& histogram, int digits,
                           const Style& style);

}  // namespace lnorm
