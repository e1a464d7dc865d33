#pragma once

#include <string>

#include "lnorm/measure/comparison.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// For people: the verdict, the counts, the greatest differences, the worst elements and the first mismatches.
std::string comparison_text(const Comparison& comparison, const Style& style);

// For programs: one JSON object on one line. docs/reports.md has its keys.
std::string comparison_json(const Comparison& comparison);

}  // namespace lnorm
