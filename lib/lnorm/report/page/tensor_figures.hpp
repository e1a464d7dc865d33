#pragma once

#include <vector>

#include "lnorm/measure/report_data.hpp"
#include "lnorm/report/page/figure.hpp"

// What a tensor is before and after normalization.
namespace lnorm::page {

// Along the rows. name: "x-mean"; what: "Mean of every row, before"; series: as of add_colors; unit: of the values.
// first_row: the number of the first.
Figure profile_figure(std::string name, std::string what, std::string_view series,
                      std::string_view unit, const RowBands& bands, std::int64_t first_row);

// One of the rows that stand out, as x, y and softmax. The signal "selected" says which: its number among them.
std::vector<Figure> row_figures(const std::vector<OutlierRow>& rows, const Stats& stats);

}  // namespace lnorm::page
