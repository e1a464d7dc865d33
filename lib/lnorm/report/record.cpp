#include "lnorm/report/record.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_number.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

namespace {

bool is_absent(const Figure& figure) {
  return figure.key.empty() || std::holds_alternative<Absent>(figure.value);
}

bool is_null(const Figure& figure) {
  const auto* const record = std::get_if<Record>(&figure.value);
  return is_absent(figure) || std::holds_alternative<std::monostate>(figure.value) ||
         (record != nullptr && std::ranges::all_of(*record, is_null));
}

// As a byte that no text has, and its value's number.
constexpr char kSlot = '\0';
constexpr char kFirstSlot = '0';
void append_slot(Slot slot, std::string& text) {
  text += kSlot;
  text += static_cast<char>(kFirstSlot + static_cast<int>(slot.value));
}

// As nlohmann::json writes it, but for numbers, which are the closest of the shortest decimals, and without its tree of objects,
// which of many rows would take longer than all else.
struct ToJson {
  std::string& text;

  void operator()(std::monostate) const { text += "null"; }
  void operator()(Absent) const { text += "null"; }
  void operator()(Undefined) const { (*this)(kNan); }
  void operator()(Slot slot) const { append_slot(slot, text); }
  void operator()(bool value) const { text += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { text += std::to_string(value); }
  void operator()(double value) const {
    if (std::isnan(value)) {
      text += R"("NaN")";
    } else if (std::isinf(value)) {
      text += value < 0 ? R"("-Infinity")" : R"("Infinity")";
    } else {
      char buffer[kJsonNumberRoom];
      text += json_number(value, buffer);
    }
  }
  void operator()(const Element& element) const {
    if (is_floating(element.dtype)) return (*this)(element.value.high);
    text += value_text(element.value, element.dtype);
  }
  void operator()(Ulps ulps) const {
    if (ulps.is_real) return (*this)(ulps.value());
    text += std::to_string(ulps.rank);
  }
  void operator()(std::string_view words) const {
    const bool is_plain = std::ranges::all_of(
        words, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
    text += is_plain ? concat('"', words, '"') : json_text(words);
  }
  template <class T>
  void operator()(const std::vector<T>& list) const {
    text += '[';
    for (const T& item : list) {
      if (&item != list.data()) text += ',';
      (*this)(item);
    }
    text += ']';
  }
  void operator()(const Record& record) const {
    text += '{';
    add_members(record);
    text += '}';
  }

  void add_members(const Record& record) const {
    for (const Figure& figure : record) {
      if (is_absent(figure)) continue;
      const std::size_t dot = figure.key.find('.');
      if (dot == figure.key.npos) {
        add_member(figure.key, figure);
        continue;
      }
      // The first part of an object has the others with it, wherever they stand.
      const std::string_view object = figure.key.substr(0, dot + 1);
      std::vector<const Figure*> parts;
      for (const Figure& part : record) {
        if (part.key.starts_with(object) && !is_absent(part)) parts.push_back(&part);
      }
      if (parts.front() != &figure) continue;
      add_key(figure.key.substr(0, dot));
      if (std::ranges::all_of(parts, [](const Figure* part) { return is_null(*part); })) {
        text += "null";
        continue;
      }
      text += '{';
      for (const Figure* const part : parts) add_member(part->key.substr(dot + 1), *part);
      text += '}';
    }
  }

  void add_member(std::string_view key, const Figure& figure) const {
    add_key(key);
    if (is_null(figure)) return (*this)(std::monostate());
    std::visit(*this, static_cast<const AnyValue&>(figure.value));
  }

  void add_key(std::string_view key) const {
    if (text.back() != '{') text += ',';
    text += '"';
    text += key;
    text += "\":";
  }
};

// Quoted where it must be [RFC 4180].
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field.append(c == '"' ? 2 : 1, c);
  return field + '"';
}

// Numbers in full precision.
struct ToCsv {
  std::string& text;

  void operator()(Slot slot) const { append_slot(slot, text); }
  void operator()(std::int64_t count) const { text += std::to_string(count); }
  void operator()(double value) const { append_value(value, text); }
  void operator()(Ulps value) const { text += exact_text(value); }
  void operator()(const Element& element) const {
    if (is_floating(element.dtype)) return (*this)(element.value.high);
    text += value_text(element.value, element.dtype);
  }
  void operator()(const Shape& shape) const { text += to_string(shape); }
  void operator()(const std::string& words) const { text += words; }
  void operator()(const std::vector<std::string>& words) const { text += joined(words, " "); }
  void operator()(const Record& record) const {
    std::visit(*this, static_cast<const AnyValue&>(record.front().value));
  }
  void operator()(const std::vector<Record>& records) const {
    for (const Record& record : records) {
      if (&record != records.data()) text += ' ';
      (*this)(record);
    }
  }
  template <class Nothing>
  void operator()(const Nothing&) const {}
};

void append_csv(const AnyValue& value, std::string& text) { std::visit(ToCsv{text}, value); }

void append_field(const AnyValue& value, std::string& text) {
  if (std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value)) {
    return append_csv(value, text);
  }
  std::string field;
  append_csv(value, field);
  text += csv_field(field);
}

// append: of a figure.
template <class Append>
std::string joined_columns(const Record& record, Append append) {
  std::vector<const Figure*> columns;
  columns.reserve(record.size());
  for (const Figure& figure : record) {
    if (figure.column != kNoColumn) columns.push_back(&figure);
  }
  const auto came = [](const Figure* figure) { return figure->came; };
  if (!std::ranges::is_sorted(columns, {}, came)) std::ranges::stable_sort(columns, {}, came);
  std::string line;
  for (const Figure* const figure : columns) {
    if (figure != columns.front()) line += ',';
    append(*figure, line);
  }
  line += '\n';
  return line;
}

// The report up to the brace that closes it.
std::string headed(std::string_view command, const Record& report) {
  const int schema = command == "check" ? 2 : 1;  // of 0.8.0's check it was 1
  std::string text = concat(R"({"schema":)", schema, R"(,"command":")", command, '"');
  ToJson{text}.add_members(report);
  return text;
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

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write_json(std::string_view command, const Record& report, ByteSink& bytes) {
  bytes.write(headed(command, report) + "}\n");
}

JsonList::JsonList(std::string_view command, const Record& head, std::string_view key,
                   ByteSink& bytes, const std::optional<Top>& top)
    : bytes_(bytes), end_(top ? "]}" : "]") {
  std::string text = headed(command, head);
  if (top) text += concat(R"(,"top":{"by":")", name(top->by), '"');
  bytes_.write(concat(text, ",\"", key, "\":["));
}

void JsonList::add(const Record& item) {
  text_ = ',';
  ToJson{text_}(item);
  add_text(text_);
}

void JsonList::add_text(std::string_view items) {
  bytes_.write(items.substr(is_first_ ? 1 : 0));
  is_first_ = false;
}

void JsonList::finish(const Record& tail) {
  text_ = end_;
  ToJson{text_}.add_members(tail);
  bytes_.write(text_ + "}\n");
}

std::string csv_names(const Record& record) {
  return joined_columns(record, [](const Figure& figure, std::string& line) {
    std::string name(figure.column.empty() ? figure.key : figure.column);
    std::ranges::replace(name, '.', '_');
    line += name;
  });
}

std::string csv_line(const Record& record, std::size_t known) {
  return joined_columns(record, [&](const Figure& figure, std::string& line) {
    if (static_cast<std::size_t>(&figure - record.data()) < known) append_field(figure.value, line);
  });
}

ItemForm::ItemForm(Format format, const Record& item)
    : format_(format), end_(format == Format::csv ? csv_line(item) : ",") {
  if (format == Format::json) ToJson{end_}(item);
  for (std::size_t slot; (slot = end_.find(kSlot)) != end_.npos; end_.erase(0, slot + 2)) {
    pieces_.push_back(
        {end_.substr(0, slot), static_cast<std::size_t>(end_[slot + 1] - kFirstSlot)});
  }
}

void ItemForm::Place::put(double value) const {
  format_ == Format::json ? ToJson{text_}(value) : append_value(value, text_);
}

void ItemForm::Place::put(std::int64_t value) const { text_ += std::to_string(value); }

void ItemForm::Place::put(const Value& value) const {
  const AnyValue& any = value;
  format_ == Format::json ? std::visit(ToJson{text_}, any) : append_field(any, text_);
}

void write_junit(std::string_view command, std::string_view type,
                 const std::vector<JunitCase>& cases, ByteSink& bytes) {
  const auto count = [&](std::string JunitCase::*text) {
    return std::count_if(cases.begin(), cases.end(),
                         [&](const JunitCase& one) { return !(one.*text).empty(); });
  };
  const std::string numbers = concat(R"( name="lnorm )", command, R"(" tests=")", cases.size(),
                                     R"(" failures=")", count(&JunitCase::failure), R"(" errors=")",
                                     count(&JunitCase::error), R"(" time="0")");
  bytes.write(concat(R"(<?xml version="1.0" encoding="UTF-8"?>)", "\n<testsuites", numbers,
                     ">\n  <testsuite", numbers, R"( skipped=")", count(&JunitCase::skipped),
                     "\">\n"));
  for (const JunitCase& one : cases) {
    bytes.write(concat(R"(    <testcase name=")", escaped(one.name), R"(" classname="lnorm.)",
                       command, R"(" time="0">)"));
    if (!one.skipped.empty()) {
      bytes.write(concat(R"(<skipped message=")", escaped(one.skipped), R"("/>)"));
    } else if (!one.error.empty()) {
      bytes.write(concat(R"(<error message=")", escaped(one.error), R"("/>)"));
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
  std::string text;
  append_csv(value, text);
  return text.empty() ? "-" : text;
}

}  // namespace lnorm
