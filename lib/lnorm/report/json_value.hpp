#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/medians.hpp"
#include "lnorm/measure/ulp.hpp"
#include "lnorm/measure/where.hpp"

namespace lnorm {

using Json = nlohmann::ordered_json;

struct Comparison;

// What a comparison has in a report: all but schema and command.
Json comparison_object(const Comparison& comparison);

// Values in the JSON of reports: numbers, exactly; where they are not finite the strings "NaN",
// "Infinity" and "-Infinity", as the JSON form of Protocol Buffers has it. What there is not is null.

inline Json json_value(std::int64_t count) { return count; }

inline Json json_value(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return value;
}

inline Json json_value(Number value, DType dtype) {
  if (is_floating(dtype)) return json_value(value.high);
  const Int128 integer = integer_of(value);
  if (integer < 0) return static_cast<std::int64_t>(integer);
  return static_cast<std::uint64_t>(integer);
}

inline Json json_value(Ulps ulps) {
  return ulps.is_real ? json_value(ulps.value()) : Json(ulps.rank);
}

inline Json json_value(const TensorInfo& info) {
  return {{"name", info.name}, {"dtype", name(info.dtype)}, {"shape", file_shape(info)}};
}

inline Json json_value(const AffectedNumbers& numbers) {
  return {{"count", numbers.count}, {"first", numbers.first}};
}

inline Json json_value(const ColumnSummary& column) {
  return {{"count", column.count},
          {"min", json_value(column.min)},
          {"median", json_value(column.median)},
          {"max", json_value(column.max)}};
}

inline Json index_json(const std::optional<Shape>& index) { return index ? Json(*index) : Json(); }

inline Json json_value(const RowSlice& slice) {
  return {{"first", slice.first}, {"rows", slice.count}, {"of", all_rows(slice)}};
}

template <class T>
Json json_value(const std::optional<T>& value) {
  return value ? json_value(*value) : Json();
}

// The keys with which reports of a normalization begin.
inline Json normalization_json(std::string_view command, const TensorInfo& x, DType out,
                               const Axes& axes, const Formula& formula) {
  Json result{{"schema", 1},
              {"command", command},
              {"input", json_value(x)},
              {"output_dtype", name(out)},
              {"axes", file_axes(x, axes)},
              {"eps", formula.eps},
              {"eps_on", formula.eps_place().name},
              {"ddof", formula.ddof},
              {"rms", formula.rms}};
  if (x.split) result["groups"] = x.shape[*x.split];
  return result;
}

// The text is one line. Bytes of a name that are not UTF-8 become U+FFFD.
inline std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A JSON object in which the items of a list come one by one: {head, "key":[items], tail}.
class JsonList {
 public:
  JsonList(const Json& head, const std::string& key, ByteSink& bytes) : bytes_(bytes) {
    std::string text = json_text(head);
    text.pop_back();  // the brace that closes it
    bytes_.write(text + ",\"" + key + "\":[");
  }
  void add(const Json& item) {
    bytes_.write((is_first_ ? "" : ",") + json_text(item));
    is_first_ = false;
  }
  void finish(const Json& tail) { bytes_.write("]," + json_text(tail).erase(0, 1) + '\n'); }

 private:
  ByteSink& bytes_;
  bool is_first_ = true;
};

}  // namespace lnorm
