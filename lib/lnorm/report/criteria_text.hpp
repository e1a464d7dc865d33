#pragma once

#include <string>
#include <vector>

#include "lnorm/measure/comparison.hpp"

namespace lnorm {

// "tolerance rtol 1e-07 + atol 1e-07 and 1 ulp, max mismatched 1%"; without bounds of elements "criteria min sqnr 60 dB".
std::string criteria_text(const Criteria& criteria);

// What does not hold, with what was found: "max ulp 1 (2.5), tolerance (3 elements)".
std::string failures_text(const Criteria& criteria, const std::vector<Failure>& failures);

// "3", "1%".
std::string mismatch_limit_text(const MismatchLimit& limit);

}  // namespace lnorm
