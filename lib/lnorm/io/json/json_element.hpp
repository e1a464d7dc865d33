#pragma once

#include <simdjson.h>

#include <cstddef>
#include <vector>

#include "lnorm/core/dtype.hpp"

namespace lnorm {

// Appends the bytes of a JSON number, rounded once to the dtype, to elements. Floats take NaN,
// Infinity, -Infinity and null (a NaN), too; bool takes true, false, 0 and 1. Returns false, and
// appends nothing, if the value is something else or beyond the dtype's range.
bool append_json_element(simdjson::ondemand::value& value, DType dtype,
                         std::vector<std::byte>& elements);

}  // namespace lnorm
