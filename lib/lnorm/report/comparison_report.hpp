#pragma once

#include <string>

#include "lnorm/measure/comparison.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// For people: the verdict, the counts, the greatest differences and the first mismatches.
std::string comparison_text(const Comparison& comparison, const Style& style);

// For programs: one JSON object on one line. Its keys:
//
//   schema                          1
//   command                         "compare"
//   actual, expected                {name, dtype, shape}
//   equal                           the verdict; false, too, where the shapes differ
//   elements, mismatched            counts; null where the shapes differ
//   tolerance                       {rtol, atol, max_ulp (or null), equal_nan}
//   greatest_absolute_difference    {value, index, actual, expected}, or null where no pair counts or
//                                   the shapes differ
//   greatest_relative_difference    the same
//   greatest_ulp_distance           the same
//   non_finite_one_side             how many are NaN or infinite on one side, finite on the other; null
//                                   where the shapes differ
//   non_finite_differing            how many are finite on neither side, and not equal; the same
//   mismatches                      [{index, actual, expected}], the first ones
//   rows                            {axes, rows, mismatched, first (its index, or null)}; only where axes
//                                   were given and the shapes are the same
//
// Values that are not finite are the strings "NaN", "Infinity", "-Infinity".
std::string comparison_json(const Comparison& comparison);

}  // namespace lnorm
