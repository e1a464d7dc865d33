#pragma once

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/explanation.hpp"

namespace lnorm {

// For programs: one JSON object on one line. docs/reports.md has its keys.
void write_explanation_json(const Explanation& explanation, ByteSink& bytes);

}  // namespace lnorm
