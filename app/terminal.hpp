#pragma once

#include <cstddef>

#include "arguments.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm::app {

// What standard output can show: color as asked for, by default on a terminal unless NO_COLOR is set
// [no-color.org]; UTF-8 by the locale; on a terminal the width that COLUMNS says, or its own, or 80; elsewhere the
// given one.
Style output_style(When color, int width_elsewhere = Style::kUsualWidth);

// Whether standard error is a terminal on which a line can be drawn again.
bool can_redraw_standard_error();

// In characters; 80 if no terminal tells.
std::size_t standard_error_width();

}  // namespace lnorm::app
