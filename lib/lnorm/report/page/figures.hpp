#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lnorm/measure/comparison.hpp"
#include "lnorm/measure/report_data.hpp"
#include "lnorm/report/page/figure.hpp"

// All figures.
namespace lnorm::page {

// ---- What a tensor, or tensors of a set, are before and after normalization.

// Shows a profile along the rows, of which the first has this number.
Figure profile_figure(const RowProfile& profile, const Bands& bands, std::int64_t first_row);

// The largest |x| along the features.
Figure features_figure(const Bands& bands);

// One of the rows that stand out, as x, y and softmax. The signal "selected" says which: its number among them.
std::vector<Figure> row_figures(const std::vector<OutlierRow>& rows, const Stats& stats);

// The elements before and after, in bars on one axis. Requires a finite element before.
Figure distribution_figure(const StatsHistograms& histograms);

// Rows by elements, before and after, in one scale of colors.
std::vector<Figure> heat_map_figures(const TensorReportData& report_data);

// A number of every tensor of a set, before and after or before alone, in the order of values, of which there are some: objects with
// "name", "before" and "after", and with "before_min", "before_max" and so on where there are bands. unit: of the numbers.
// over: what bands are of, "rows"; empty: there are none.
Figure layers_figure(std::string name, std::string title, std::string_view unit,
                     std::string_view over, Json values);

// ---- Where two tensors differ, and by how much.

Figure ulp_figure(const Comparison& comparison);

// Along the rows of the error map, which the comparison has.
Figure error_figure(const Comparison& comparison);

// Rows by elements, and where the worst element and the first mismatch are. Requires an error map.
Figure error_map_figure(const Comparison& comparison);

}  // namespace lnorm::page
