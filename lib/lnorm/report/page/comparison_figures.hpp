#pragma once

#include "lnorm/measure/comparison.hpp"
#include "lnorm/report/page/figure.hpp"

// Where two tensors differ, and by how much.
namespace lnorm::page {

Figure ulp_figure(const Comparison& comparison);

// Along the rows of the error map, which the comparison has.
Figure error_figure(const Comparison& comparison);

// Rows by elements, and where the worst element and the first mismatch are. Requires an error map.
Figure error_map_figure(const Comparison& comparison);

}  // namespace lnorm::page
