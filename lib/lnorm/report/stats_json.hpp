#pragma once

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/stats.hpp"

namespace lnorm {

// For programs: one JSON object on one line. docs/reports.md has its keys.
void write_stats_json(const Stats& stats, ByteSink& bytes);

// One line a row, after a line of names: row,non_finite,output_non_finite,input_mean,... in full precision; nan, inf.
void write_stats_csv(const Stats& stats, ByteSink& bytes);

}  // namespace lnorm
