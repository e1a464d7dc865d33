#pragma once

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/stats.hpp"
#include "lnorm/report/style.hpp"

namespace lnorm {

// For people: what was measured, a table of the rows (of many rows the first and the last ones, unless
// all are asked for), a summary over the rows, and the histograms if there are any. All columns of one
// unit have one notation: four decimals, or scientific with four where those would not show them.
void write_stats_text(const Stats& stats, bool all, const Style& style, ByteSink& bytes);

}  // namespace lnorm
