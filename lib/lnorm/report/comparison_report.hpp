#pragma once

#include <string>
#include <string_view>

#include "lnorm/measure/comparison.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// For people: the verdict, the counts, the greatest differences, the worst elements and the first mismatches.
std::string comparison_text(const Comparison& comparison, const Style& style);

// What the report of several tensors says in the same words.
std::string dtypes_text(const Comparison& comparison, std::string_view between);
std::string tolerance_text(const Tolerance& tolerance);

}  // namespace lnorm
