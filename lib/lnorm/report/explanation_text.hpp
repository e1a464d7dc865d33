#pragma once

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/explanation.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// For people who learn it: each step as a formula and with the row's numbers in it, then a table of the elements. digits:
// significant ones. It is no wider than the style's width.
void write_explanation_text(const Explanation& explanation, int digits, const Style& style,
                            ByteSink& bytes);

}  // namespace lnorm
