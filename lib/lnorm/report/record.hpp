#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/measure/medians.hpp"
#include "lnorm/measure/top.hpp"
#include "lnorm/measure/ulp.hpp"
#include "lnorm/measure/where.hpp"

// A report is a record of figures, each of which is described once, where it is found: JSON, CSV and the tables of pages walk
// the record.
namespace lnorm {

using Json = nlohmann::ordered_json;

struct Figure;
using Record = std::vector<Figure>;

struct Absent {};     // JSON has no such key
struct Undefined {};  // a number of nothing: "NaN" in JSON, where others have none

// Where the value of this number stands, in an item of which there are many.
struct Slot {
  std::size_t value = 0;
};

// An element of a tensor.
struct Element {
  Number value;
  DType dtype = DType::float64;
};

// Records of what a report says more often than once.
Record record_of(const TensorInfo& info);
Record record_of(const RowSlice& slice);
Record record_of(const AffectedNumbers& numbers);
Record record_of(const ColumnSummary& column);

// Nothing, the first of them, is null in JSON, and empty in CSV, which has of an object its first figure.
using AnyValue = std::variant<std::monostate, Absent, Undefined, Slot, bool, std::int64_t, double,
                              Element, Ulps, std::string, Shape, std::vector<Shape>,
                              std::vector<std::string>, Record, std::vector<Record>>;

struct Value : AnyValue {
  Value() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a row of a record says what is found
  template <class T, class = std::enable_if_t<!std::is_base_of_v<Value, std::remove_cvref_t<T>>>>
  Value(T&& value);
};

inline constexpr std::string_view kNoColumn = "-";

struct Figure {
  // In JSON; a dot leads into an object, which is null where all its figures are nothing. Empty: JSON says it otherwise.
  std::string_view key;
  Value value;
  std::string_view words = {};   // in tables for people; empty: it is not there
  std::string_view column = {};  // in CSV; empty: the key with _ for dots
  int came = 0;                  // columns stand in the order in which they came
};

template <class T, class>
Value::Value(T&& value) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (requires { value.has_value(); }) {
    if (value) *this = Value(*value);
  } else if constexpr (std::is_integral_v<Plain> && !std::is_same_v<Plain, bool>) {
    emplace<std::int64_t>(value);
  } else if constexpr (std::is_enum_v<Plain>) {
    emplace<std::string>(name(value));
  } else if constexpr (std::is_convertible_v<T, std::string_view>) {
    emplace<std::string>(std::string_view(value));
  } else if constexpr (std::is_same_v<Plain, Axes>) {
    emplace<Shape>(value.begin(), value.end());
  } else if constexpr (requires { record_of(value); }) {
    emplace<Record>(record_of(value));
  } else {
    AnyValue::operator=(std::forward<T>(value));
  }
}

// If there is one; else JSON has no such key.
template <class Optional>
Value if_any(const Optional& value) {
  return value ? Value(*value) : Absent();
}

// The figures with which reports of a normalization begin.
Record normalization_record(const TensorInfo& x, DType out, const Axes& axes,
                            const Formula& formula);

// The text is one line. Bytes of a name that are not UTF-8 become U+FFFD.
std::string json_text(const Json& json);

// Writes what a command reports, under the keys that all reports begin with. Numbers are exact; where they are not finite they
// are the strings "NaN", "Infinity" and "-Infinity", as the JSON form of Protocol Buffers has it.
void write_json(std::string_view command, const Record& report, ByteSink& bytes);

// A report in which the items of a list come one by one: {head, "key":[items], tail}. Those that stand out are in
// {head, "top":{"by":BY, "key":[items]}, tail}.
class JsonList {
 public:
  JsonList(std::string_view command, const Record& head, std::string_view key, ByteSink& bytes,
           const std::optional<Top>& top = {});
  void add(const Record& item);
  // Items as JSON's ItemForm makes them.
  void add_text(std::string_view items);
  void finish(const Record& tail = {});

 private:
  ByteSink& bytes_;
  std::string_view end_;
  std::string text_;  // of an item
  bool is_first_ = true;
};

// Lines of CSV: the columns' names, and a record. known: so many of its figures there are; the others are empty.
std::string csv_names(const Record& record);
std::string csv_line(const Record& record, std::size_t known = SIZE_MAX);

// The text of many items that differ in their values alone: a line of CSV, or an item of a JsonList. What stands between the
// values is made once, as records of all items would take longer than all else.
class ItemForm {
 public:
  enum class Format { json, csv };

  // Where a value is written.
  class Place {
   public:
    Place(Format format, std::string& text) : format_(format), text_(text) {}
    void put(double value) const;
    void put(std::int64_t value) const;
    void put(const Value& value) const;

   private:
    Format format_;
    std::string& text_;
  };

  ItemForm(Format format, const Record& item);

  // fill(number, place): puts the value of that number.
  template <class Fill>
  void append(std::string& text, const Fill& fill) const {
    const Place place(format_, text);
    for (const Piece& piece : pieces_) {
      text += piece.before;
      fill(piece.value, place);
    }
    text += end_;
  }

 private:
  struct Piece {
    std::string before;
    std::size_t value;
  };
  Format format_;
  std::vector<Piece> pieces_;
  std::string end_;
};

// A test case of the XML that CI systems read: it failed, was skipped, or passed.
struct JunitCase {
  std::string name;
  std::string failure = {};             // in a sentence; empty: none
  std::vector<std::string> lines = {};  // more of it
  std::string skipped = {};             // why; empty: it was not
  std::string error = {};               // what kept it from being judged; empty: nothing
};

// The report of one command. type: of its failures. [testmoapp/junitxml]
void write_junit(std::string_view command, std::string_view type,
                 const std::vector<JunitCase>& cases, ByteSink& bytes);

// In a table for people; what there is not is "-".
std::string cell_text(const Value& value, int digits);

}  // namespace lnorm
