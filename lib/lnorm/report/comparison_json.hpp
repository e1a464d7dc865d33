#pragma once

#include <string>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/comparison.hpp"
#include "lnorm/measure/set_comparison.hpp"

namespace lnorm {

// For programs: one JSON object on one line. docs/reports.md has its keys.
std::string comparison_json(const Comparison& comparison);
void write_comparison_json(const SetComparison& set, ByteSink& bytes);

}  // namespace lnorm
