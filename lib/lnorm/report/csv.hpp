#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/shape.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

// A text as a field of CSV: quoted where it must be [RFC 4180].
inline std::string csv_text(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field.append(c == '"' ? 2 : 1, c);
  return field + '"';
}
// Numbers in full precision. What there is not is empty.
inline std::string csv_text(std::int64_t count) { return std::to_string(count); }
inline std::string csv_text(double value) { return value_text(value); }
inline std::string csv_text(const Shape& shape) { return csv_text(to_string(shape)); }
template <class T>
std::string csv_text(const std::optional<T>& value) {
  return value ? csv_text(*value) : "";
}

// A field is the name of a column and what stands there.
struct CsvField {
  std::string name;
  std::string cell;
};

// Joins the names, or what stands under them, to a line.
inline std::string csv_line(const std::vector<CsvField>& fields, std::string CsvField::*part) {
  std::string line;
  for (const CsvField& field : fields) line += (&field == fields.data() ? "" : ",") + field.*part;
  return line + '\n';
}

}  // namespace lnorm
