#pragma once

#include <string>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/comparison.hpp"
#include "lnorm/measure/set_comparison.hpp"

namespace lnorm {

// For programs: a line of names, then one line a tensor, in full precision. docs/reports.md has its columns.
std::string comparison_csv(const Comparison& comparison);
void write_comparison_csv(const SetComparison& set, ByteSink& bytes);

}  // namespace lnorm
