#pragma once

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/stats.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

struct StatsTextOptions {
  bool all = false;  // rows, not the first and the last of many
  int digits = 3;    // significant ones
};

// For people: what was measured and how rows are numbered, a table of the rows, a summary over the rows,
// and the histograms if there are any. The table is no wider than the style's width: columns that do not
// fit follow below.
void write_stats_text(const Stats& stats, const StatsTextOptions& options, const Style& style,
                      ByteSink& bytes);

}  // namespace lnorm
