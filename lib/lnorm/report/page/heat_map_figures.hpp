#pragma once

#include <vector>

#include "lnorm/measure/report_data.hpp"
#include "lnorm/report/page/figure.hpp"

namespace lnorm::page {

// Rows by elements, before and after, in one scale of colors.
std::vector<Figure> heat_map_figures(const TensorReportData& report_data);

}  // namespace lnorm::page
