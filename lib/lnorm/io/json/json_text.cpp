#include "lnorm/io/json/json_text.hpp"

#include <simdjson.h>

#include <algorithm>

#include "lnorm/core/text.hpp"
#include "lnorm/io/members.hpp"

namespace lnorm {

namespace {

// The first bracket outside strings that is(the depth behind it), or null.
template <class Is>
const char* find_bracket(std::string_view text, Is is) noexcept {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    } else {
      continue;
    }
    if (is(depth)) return text.data() + i;
  }
  return nullptr;
}

bool starts_number(std::string_view text) {
  return text.find_first_of("-0123456789NI") == 0;  // NaN and Infinity are some
}

}  // namespace

std::string_view trimmed_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kJsonBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kJsonBlanks) - first + 1);
}

std::string hint_for_table(const std::string& file, std::string_view text, bool has_header) {
  text = text.substr(0, 4096);
  const std::string_view rows =
      text.substr(has_header ? std::min(text.find('\n'), text.size()) : 0);
  struct Separator {
    char mark;
    std::string_view split, number;
  };
  constexpr std::string_view kCell = "float(v.strip() or 'nan')";
  static constexpr Separator kSeparators[] = {
      {';', "split(';')", "float(v.strip().replace(',', '.') or 'nan')"},
      {'\t', R"(split('\t'))", kCell},
      {',', "split(',')", kCell},
      {'\0', "split()", "float(v)"}};
  const Separator& by =
      *std::find_if(std::begin(kSeparators), std::end(kSeparators) - 1,
                    [&](const Separator& s) { return rows.find(s.mark) != rows.npos; });
  const bool has_labels =
      has_header && text.starts_with(by.mark);  // the table of pandas, with its index
  return hint_about(
      file, concat(R"(lines of numbers become JSON by python3 -c "import json, sys; )",
                   has_header ? "next(sys.stdin); " : "", "print(json.dumps([[", by.number,
                   " for v in line.", by.split, has_labels ? "[1:]" : "",
                   R"sh(] for line in sys.stdin if line.strip()]))" < 'FILE' > 'FILE.json')sh"));
}

std::string JsonText::found(const char* at) const {
  const std::string_view rest = from(at);
  if (rest.empty()) return "the end of the text";
  const std::size_t line_end = std::min<std::size_t>(rest.find_first_of("\r\n", 1), 16);
  return concat("'", printable(rest.substr(0, line_end)), "'");
}

const char* JsonText::end_of_value(const char* start) const noexcept {
  const char* const at = find_bracket(from(start), [](std::size_t depth) { return depth == 0; });
  return at == nullptr ? nullptr : at + 1;
}

const char* JsonText::deeper_than(std::size_t most, const char* start) const noexcept {
  return find_bracket(from(start), [&](std::size_t depth) { return depth > most; });
}

std::string JsonText::message(const char* at, std::string_view what) const {
  const std::string_view before(begin(), static_cast<std::size_t>(at - begin()));
  const auto line = line_ + std::count(before.begin(), before.end(), '\n');
  const std::string_view line_start = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto column = 1 + std::count_if(line_start.begin(), line_start.end(), [](char c) {
                        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
                      });
  return concat(printable(name_), ":", line, ":", column, ": ", what);
}

void JsonText::fail(const char* at, std::string_view what, std::string hint) const {
  throw Error(message(at, what), std::move(hint));
}

void JsonText::fail_string() const {
  const char* string = nullptr;  // where the string that at is in starts
  for (const char* at = begin(); at < end(); ++at) {
    if (string != nullptr && static_cast<unsigned char>(*at) < 0x20) {
      fail(at, concat("found ", found(at), " in a string, expected it escaped"));
    }
    if (string != nullptr && *at == '\\') {
      ++at;
    } else if (*at == '"') {
      string = string == nullptr ? at : nullptr;
    }
  }
  fail(string != nullptr ? string : begin(), "the string that starts here does not end");
}

void JsonText::fail_after_value(const char* at) const {
  const std::string_view rest = trimmed_json(from(at));
  const char* const next = rest.empty() ? at : rest.data();
  const std::string what =
      concat("found ", found(next), " after the first value, expected the end");
  // at may be behind the blanks already.
  const std::string_view before(begin(), static_cast<std::size_t>(next - begin()));
  const std::size_t value_end = before.find_last_not_of(kJsonBlanks) + 1;  // npos + 1 is 0
  const bool on_own_line = before.find('\n', value_end) != before.npos;
  const std::string_view other = trimmed_json(rest.substr(rest.starts_with(',') ? 1 : 0));
  if (starts_number(trimmed_json(text_)) && starts_number(other)) {
    fail(next, what, hint_for_table(name_, text_));
  }
  if (on_own_line && rest.find_first_of("[{-0123456789") == 0) throw MoreLines(message(next, what));
  fail(next, what);
}

void JsonText::fail_utf8() const {
  std::string_view rest = text_;
  std::size_t line_end = rest.find('\n');
  while (line_end != std::string_view::npos && simdjson::validate_utf8(rest.substr(0, line_end))) {
    rest.remove_prefix(line_end + 1);
    line_end = rest.find('\n');
  }
  fail(rest.data(), "this line is not valid UTF-8");
}

}  // namespace lnorm
