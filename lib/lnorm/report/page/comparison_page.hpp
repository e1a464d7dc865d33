#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lnorm/measure/set_comparison.hpp"
#include "lnorm/report/page/page.hpp"

namespace lnorm::page {

// How a comparison came out. title: empty if the page has no other.
Section comparison_section(std::string id, std::string_view title, const Comparison& comparison);

// All pairs of a set, and names that one side alone has. sections[i]: the id of the section of pair i; empty if it has
// none.
Section set_comparison_section(const SetComparison& set, const std::vector<std::string>& sections);

}  // namespace lnorm::page
