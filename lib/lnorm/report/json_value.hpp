#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/slice.hpp"
#include "lnorm/measure/column_summary.hpp"

namespace lnorm {

// Values in the JSON of reports: numbers, exactly; where they are not finite the strings "NaN",
// "Infinity" and "-Infinity", as the JSON form of Protocol Buffers has it.

inline nlohmann::ordered_json json_value(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return value;
}

inline nlohmann::ordered_json json_value(Number value, DType dtype) {
  if (is_floating(dtype)) return json_value(value.high);
  const Int128 integer = integer_of(value);
  if (integer < 0) return static_cast<std::int64_t>(integer);
  return static_cast<std::uint64_t>(integer);
}

inline nlohmann::ordered_json json_value(const ColumnSummary& column) {
  return {{"count", column.count},
          {"min", json_value(column.min)},
          {"median", json_value(column.median)},
          {"max", json_value(column.max)}};
}

inline nlohmann::ordered_json json_value(const RowSlice& slice) {
  return {{"first", slice.first}, {"rows", slice.count}, {"of", all_rows(slice)}};
}

// On one line. Bytes of a name that are not UTF-8 become U+FFFD.
inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace lnorm
