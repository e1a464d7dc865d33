#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lnorm/measure/comparison.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// A distance: "3", with a fraction three digits of it; "beyond" where the dtype has none.
std::string ulps_text(Ulps ulps, DType dtype);

// How many of all distances are small, and how large the greatest are: "0 in 12.5%, <= 1 in 80%, <= 1024 in all".
std::string ulp_shares_text(const Comparison& comparison);

// A title, and a line for every class of distances with its count, its share and a bar.
std::string ulp_histogram_text(std::string_view title, const Comparison& comparison,
                               const Style& style);

}  // namespace lnorm
