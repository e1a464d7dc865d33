#pragma once

#include <string>
#include <string_view>

#include "lnorm/report/page/figure.hpp"

namespace lnorm::page {

// A number of every tensor of a set, before and after, in the order of values: objects with "name", "before" and "after",
// and with "before_min", "before_max" and so on where there are bands. unit: of the numbers.
Figure layers_figure(std::string name, std::string title, std::string_view unit, bool has_bands,
                     Json values);

}  // namespace lnorm::page
