#pragma once

#include <string>
#include <string_view>

namespace lnorm {

// A field of a line of CSV: in quotes where it must be [RFC 4180, 2].
inline std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field.append(c == '"' ? 2 : 1, c);
  return field + '"';
}

}  // namespace lnorm
