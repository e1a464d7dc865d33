#pragma once

#include <string>

#include "lnorm/measure/set_comparison.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// For people: the verdict, a line a tensor, the names that one set alone has, a summary.
// details: the command that shows more of the first pair that differs; empty if there is none.
// histogram: draws the distances in ulp of every pair.
std::string set_comparison_text(const SetComparison& set, const std::string& details,
                                bool histogram, const Style& style);

}  // namespace lnorm
