#pragma once

#include "lnorm/measure/stats.hpp"
#include "lnorm/report/page/figure.hpp"

namespace lnorm::page {

// The elements before and after, in bars on one axis. Requires a finite element before.
Figure distribution_figure(const StatsHistograms& histograms);

}  // namespace lnorm::page
