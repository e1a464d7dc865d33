#pragma once

#include <simdjson.h>

#include <cstddef>
#include <optional>
#include <span>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/raw_bytes.hpp"

namespace lnorm {

// Appends the bytes of a JSON number, rounded once to the dtype, to elements. Floats take NaN,
// Infinity, -Infinity and null (a NaN), too; bool takes true, false, 0 and 1. Returns false, and
// appends nothing, if the value is something else or beyond the dtype's range.
bool append_json_element(simdjson::ondemand::value& value, DType dtype, RawBytes& elements);

// The same of all elements of a list, to the front of to. Returns how many there are; nothing if one is something
// else, or if there is no room.
std::optional<std::size_t> read_json_list(simdjson::ondemand::array& list, DType dtype,
                                          std::span<std::byte> to);

}  // namespace lnorm
