#include "lnorm/report/record.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/text.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

namespace {

struct ToJson {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(Absent) const { return nullptr; }
  Json operator()(Undefined) const { return "NaN"; }
  Json operator()(double value) const {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return value;
  }
  Json operator()(const Element& element) const {
    if (is_floating(element.dtype)) return (*this)(element.value.high);
    const Int128 integer = integer_of(element.value);
    if (integer < 0) return static_cast<std::int64_t>(integer);
    return static_cast<std::uint64_t>(integer);
  }
  Json operator()(Ulps ulps) const {
    return ulps.is_real ? (*this)(ulps.value()) : Json(ulps.rank);
  }
  Json operator()(const Record& record) const { return json_of(record); }
  Json operator()(const std::vector<Record>& records) const {
    Json list = Json::array();
    for (const Record& record : records) list.push_back(json_of(record));
    return list;
  }
  template <class T>
  Json operator()(const T& value) const {
    return value;
  }
};

// Numbers in full precision.
struct ToCsv {
  std::string operator()(std::int64_t count) const { return std::to_string(count); }
  std::string operator()(double value) const { return value_text(value); }
  std::string operator()(Ulps value) const { return exact_text(value); }
  std::string operator()(const Element& element) const {
    return value_text(element.value, element.dtype);
  }
  std::string operator()(const Shape& shape) const { return to_string(shape); }
  std::string operator()(const std::string& text) const { return text; }
  std::string operator()(const std::vector<std::string>& words) const { return joined(words, " "); }
  std::string operator()(const Record& record) const {
    return std::visit(*this, static_cast<const AnyValue&>(record.front().value));
  }
  std::string operator()(const std::vector<Record>& records) const {
    return joined(records, " ", *this);
  }
  template <class Nothing>
  std::string operator()(const Nothing&) const {
    return "";
  }
};

// Quoted where it must be [RFC 4180].
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field.append(c == '"' ? 2 : 1, c);
  return field + '"';
}

template <class Visitor>
auto visited(Visitor visitor, const AnyValue& value) {
  return std::visit(visitor, value);
}

template <class TextOf>
std::string joined_columns(const Record& record, TextOf text_of) {
  std::vector<const Figure*> columns;
  for (const Figure& figure : record) {
    if (figure.column != kNoColumn) columns.push_back(&figure);
  }
  std::ranges::stable_sort(columns, {}, [](const Figure* figure) { return figure->came; });
  std::string line;
  for (const Figure* const figure : columns) {
    line.append(figure == columns.front() ? "" : ",").append(text_of(*figure));
  }
  return line + '\n';
}

Json headed(std::string_view command, const Record& report) {
  Json result{{"schema", 1}, {"command", command}};
  result.update(json_of(report));
  return result;
}

}  // namespace

Record record_of(const TensorInfo& info) {
  return {{"name", info.name}, {"dtype", info.dtype}, {"shape", file_shape(info)}};
}

Record record_of(const RowSlice& slice) {
  return {{"first", slice.first}, {"rows", slice.count}, {"of", all_rows(slice)}};
}

Record record_of(const AffectedNumbers& numbers) {
  return {{"count", numbers.count}, {"first", numbers.first}};
}

Record record_of(const ColumnSummary& column) {
  return {
      {"count", column.count}, {"min", column.min}, {"median", column.median}, {"max", column.max}};
}

Record normalization_record(const TensorInfo& x, DType out, const Axes& axes,
                            const Formula& formula) {
  return {{"input", x},
          {"output_dtype", out},
          {"axes", file_axes(x, axes)},
          {"eps", formula.eps},
          {"eps_on", formula.eps_place().name},
          {"ddof", formula.ddof},
          {"rms", formula.rms},
          {"groups", x.split ? Value(x.shape[*x.split]) : Absent()}};
}

Json json_of(const Record& record) {
  Json json = Json::object();
  for (const auto& [key, value, words, column, came] : record) {
    if (key.empty() || std::holds_alternative<Absent>(value)) continue;
    const std::size_t dot = key.find('.');
    Json& object = dot == key.npos ? json : json[std::string(key.substr(0, dot))];
    object[std::string(key.substr(dot + 1))] = visited(ToJson(), value);
  }
  for (Json& member : json) {
    const auto is_null = [](const Json& part) { return part.is_null(); };
    if (member.is_object() && std::ranges::all_of(member, is_null)) member = nullptr;
  }
  return json;
}

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write_json(std::string_view command, const Record& report, ByteSink& bytes) {
  bytes.write(json_text(headed(command, report)) + '\n');
}

JsonList::JsonList(std::string_view command, const Record& head, std::string_view key,
                   ByteSink& bytes, const std::optional<Top>& top)
    : bytes_(bytes), end_(top ? "]}" : "]") {
  std::string text = json_text(headed(command, head));
  text.pop_back();  // the brace that closes it
  if (top) text += concat(R"(,"top":{"by":")", name(top->by), '"');
  bytes_.write(concat(text, ",\"", key, "\":["));
}

void JsonList::add(const Record& item) {
  bytes_.write((is_first_ ? "" : ",") + json_text(json_of(item)));
  is_first_ = false;
}

void JsonList::finish(const Record& tail) {
  const std::string text = json_text(json_of(tail)).erase(0, 1);
  bytes_.write(concat(end_, tail.empty() ? "" : ",", text, '\n'));
}

std::string csv_names(const Record& record) {
  return joined_columns(record, [](const Figure& figure) {
    std::string name(figure.column.empty() ? figure.key : figure.column);
    std::ranges::replace(name, '.', '_');
    return name;
  });
}

std::string csv_line(const Record& record, std::size_t known) {
  return joined_columns(record, [&](const Figure& figure) {
    const bool is_known = static_cast<std::size_t>(&figure - record.data()) < known;
    return is_known ? csv_field(visited(ToCsv(), figure.value)) : "";
  });
}

void write_junit(std::string_view command, std::string_view type,
                 const std::vector<JunitCase>& cases, ByteSink& bytes) {
  const auto count = [&](std::string JunitCase::*text) {
    return std::count_if(cases.begin(), cases.end(),
                         [&](const JunitCase& one) { return !(one.*text).empty(); });
  };
  const std::string numbers =
      concat(R"( name="lnorm )", command, R"(" tests=")", cases.size(), R"(" failures=")",
             count(&JunitCase::failure), R"(" errors="0" time="0")");
  bytes.write(concat(R"(<?xml version="1.0" encoding="UTF-8"?>)", "\n<testsuites", numbers,
                     ">\n  <testsuite", numbers, R"( skipped=")", count(&JunitCase::skipped),
                     "\">\n"));
  for (const JunitCase& one : cases) {
    bytes.write(concat(R"(    <testcase name=")", escaped(one.name), R"(" classname="lnorm.)",
                       command, R"(" time="0">)"));
    if (!one.skipped.empty()) {
      bytes.write(concat(R"(<skipped message=")", escaped(one.skipped), R"("/>)"));
    } else if (!one.failure.empty()) {
      const std::string failure = escaped(one.failure);
      bytes.write(concat(R"(<failure message=")", failure, R"(" type=")", type, R"(">)", failure));
      for (const std::string& line : one.lines) bytes.write('\n' + escaped(line));
      bytes.write("</failure>");
    }
    bytes.write("</testcase>\n");
  }
  bytes.write("  </testsuite>\n</testsuites>\n");
}

std::string cell_text(const Value& value, int digits) {
  if (const auto* const number = std::get_if<double>(&value)) {
    return significant_text(*number, digits);
  }
  const auto* const element = std::get_if<Element>(&value);
  if (element && is_floating(element->dtype)) return significant_text(element->value.high, digits);
  const std::string text = visited(ToCsv(), value);
  return text.empty() ? "-" : text;
}

}  // namespace lnorm
