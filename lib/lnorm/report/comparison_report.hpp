#pragma once

#include <string>
#include <string_view>

#include "lnorm/measure/comparison.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// For people: the verdict, the counts, the greatest differences, what the errors are like, the worst elements and the
// first mismatches. histogram: draws the distances in ulp.
std::string comparison_text(const Comparison& comparison, bool histogram, const Style& style);

// What the report of several tensors says in the same words.
std::string dtypes_text(const Comparison& comparison, std::string_view between);

}  // namespace lnorm
