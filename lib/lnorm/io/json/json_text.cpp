#include "lnorm/io/json/json_text.hpp"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <vector>

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

// Those that are not blank.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (!trimmed_json(line).empty()) lines.push_back(line);
  }
  return lines;
}

// Of a line of a table, without blanks around them. has_commas: in place of points.
std::vector<std::string> cells_of(std::string_view line, char mark, bool has_commas) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(mark, at), line.size());
    std::string cell(trimmed_json(line.substr(at, end - at)));
    at = end + 1;
    if (has_commas) std::replace(cell.begin(), cell.end(), ',', '.');
    if (mark != ' ' || !cell.empty()) cells.push_back(std::move(cell));
  }
  if (cells.empty()) cells.emplace_back();
  return cells;
}

// As Python's float() reads it.
bool is_number(const std::string& cell) {
  const std::string text = lower_case(cell.starts_with('+') ? cell.substr(1) : cell);
  double number;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// What names a row: it begins as no number does.
bool is_label(const std::string& cell) {
  return !cell.empty() && cell != "NA" && !is_number(cell) &&
         cell.find_first_of("+-.,0123456789") != 0;
}

// What is above a column of labels or numbers of rows.
bool is_index(const std::string& name) {
  constexpr std::string_view kNames[] = {"", "\"\"", "id", "index", "idx", "unnamed: 0"};
  return std::find(std::begin(kNames), std::end(kNames), lower_case(name)) != std::end(kNames);
}

bool starts_number(std::string_view text) {
  return text.find_first_of("-0123456789NI") == 0;  // NaN and Infinity are some
}

}  // namespace

std::string_view behind_mark(std::string_view text) {
  return text.substr(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
}

std::string_view trimmed_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kJsonBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kJsonBlanks) - first + 1);
}

std::string hint_for_table(const std::string& file, std::string_view text) {
  constexpr std::size_t kLooked = 4096;
  const bool has_mark = text.starts_with(kByteOrderMark);
  text = behind_mark(text);
  const bool is_all = text.size() < kLooked;
  std::vector<std::string_view> lines = lines_of(text.substr(0, kLooked));
  if (!is_all && lines.size() > 1) lines.pop_back();  // which may be cut
  if (lines.empty()) return {};
  const std::string_view last = lines.back();
  constexpr std::string_view kMarks = ";\t, ";
  const char mark = *std::find_if(kMarks.begin(), kMarks.end() - 1,
                                  [&](char c) { return last.find(c) != last.npos; });
  // Commas are points where there are semicolons.
  const bool has_commas = mark == ';' && text.substr(0, kLooked).find(',') != text.npos;
  std::vector<std::vector<std::string>> rows;
  rows.reserve(lines.size());
  for (const std::string_view line : lines) rows.push_back(cells_of(line, mark, has_commas));
  const std::vector<std::string> names = rows.front();
  const bool has_header = std::none_of(names.begin(), names.end(), is_number);
  if (has_header) rows.erase(rows.begin());
  if (rows.empty()) return {};
  const bool is_comment = has_header && names.front().find_first_of("#%") == 0;
  const bool is_named = has_header && !is_comment;
  const bool has_labels =
      is_label(rows.front().front()) ||
      (is_named && (is_index(names.front()) || names.size() + 1 == rows.front().size()));
  const bool ends_blank = mark != ' ' && std::all_of(rows.begin(), rows.end(), [](const auto& row) {
                            return row.size() > 1 && row.back().empty();
                          });
  bool has_na = false;
  for (const auto& row : rows) {
    for (std::size_t i = has_labels ? 1 : 0; i < row.size(); ++i) {
      has_na = has_na || row[i] == "NA";
      if (!row[i].empty() && row[i] != "NA" && !is_number(row[i])) return {};
    }
    if (row.size() < (has_labels ? 2 : 1)) return {};
  }
  std::vector<std::string> left_out;
  if (has_header) left_out.emplace_back("the first line");
  if (has_labels) left_out.emplace_back("the first column");
  return hint_about(
      file, concat("lines of numbers",
                   left_out.empty() ? "" : ", without " + joined(left_out, " and ") + ',',
                   R"( become JSON by python3 -c "import json, sys; )",
                   has_mark ? "sys.stdin.reconfigure(encoding='utf-8-sig'); " : "",
                   has_header ? "next(sys.stdin); " : "", "print(json.dumps([[float(v.strip()",
                   has_commas ? ".replace(',', '.')" : "", has_na ? ".replace('NA', 'nan')" : "",
                   mark == ' ' ? ")" : " or 'nan')", " for v in line.split(",
                   mark == ' '    ? ""
                   : mark == '\t' ? R"('\t')"
                                  : concat("'", mark, "'"),
                   ")",
                   ends_blank || has_labels
                       ? concat("[", has_labels ? "1" : "", ":", ends_blank ? "-1" : "", "]")
                       : "",
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
  if (starts_number(trimmed_json(behind_mark(text_))) && starts_number(other)) {
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
