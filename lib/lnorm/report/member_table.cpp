#include "lnorm/report/member_table.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lnorm/core/int128.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/csv_field.hpp"
#include "lnorm/report/json_value.hpp"
#include "lnorm/report/names.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

namespace {

using Json = nlohmann::ordered_json;

// Longer entries stand out of their column; otherwise one would make every line as long.
constexpr std::size_t kWidestColumn = 60;

struct ByteTotal {
  Int128 bytes = 0;  // of the tensors whose size is known
  std::int64_t unknown = 0;

  void add(const Member& member) {
    bytes += member.bytes.value_or(0);
    if (!member.bytes) ++unknown;
  }

  // Headers may claim more than that.
  bool is_countable() const { return bytes <= std::numeric_limits<std::int64_t>::max(); }
  std::int64_t count() const { return static_cast<std::int64_t>(bytes); }
};

struct Line {
  std::string name;
  std::string dtype;
  std::string shape;
  std::string size;
};

// Of the lines that count.
template <class Counts>
std::size_t column_width(const std::vector<Line>& lines, std::string Line::*column, Counts counts) {
  std::size_t width = 0;
  for (const Line& line : lines) {
    if (counts(line)) width = std::max(width, character_count(line.*column));
  }
  return std::min(width, kWidestColumn);
}

}  // namespace

void write_member_text(std::span<const Member> members, ByteSink& bytes) {
  if (members.empty()) return bytes.write("no tensors\n");
  ByteTotal total;
  std::vector<Line> lines;
  for (const Member& member : members) {
    total.add(member);
    lines.push_back({printable(member.name), printable(member.dtype),
                     member.shape ? to_string(*member.shape) : "",
                     member.bytes ? bytes_text(*member.bytes) : ""});
  }
  const auto any = [](const Line&) { return true; };
  // What there is instead of a dtype may be long, and nothing follows it.
  const auto goes_on = [](const Line& line) { return !line.shape.empty(); };
  const std::size_t name_width = column_width(lines, &Line::name, any);
  const std::size_t dtype_width = column_width(lines, &Line::dtype, goes_on);
  const std::size_t shape_width = column_width(lines, &Line::shape, any);
  const std::size_t size_width = column_width(lines, &Line::size, any);
  for (const Line& line : lines) {
    std::string text = padded(line.name, name_width) + "  ";
    text += goes_on(line) ? padded(line.dtype, dtype_width) + "  " : line.dtype;
    if (!line.size.empty()) {
      const std::size_t blanks = size_width - std::min(size_width, line.size.size());
      text += padded(line.shape, shape_width) + "  " + std::string(blanks, ' ') + line.size;
    } else {
      text += line.shape;
    }
    bytes.write(text + '\n');
  }
  const auto tensors = static_cast<std::int64_t>(members.size());
  std::string text = counted(tensors, "tensor");
  if (total.is_countable() && total.unknown < tensors) text += ", " + bytes_text(total.count());
  if (total.unknown > 0) text += concat(", ", total.unknown, " of unknown size");
  bytes.write(text + '\n');
}

void write_member_json(std::span<const Member> members, ByteSink& bytes) {
  bytes.write(R"({"schema":1,"command":"show","tensors":[)");
  ByteTotal total;
  for (const Member& member : members) {
    if (&member != members.data()) bytes.write(",");
    total.add(member);
    bytes.write(json_text({{"name", member.name},
                           {"dtype", member.dtype},
                           {"shape", member.shape ? Json(*member.shape) : Json()},
                           {"bytes", member.bytes ? Json(*member.bytes) : Json()}}));
  }
  bytes.write("],\"summary\":");
  bytes.write(json_text({{"tensors", members.size()},
                         {"bytes", total.is_countable() ? Json(total.count()) : Json()}}));
  bytes.write("}\n");
}

void write_member_csv(std::span<const Member> members, ByteSink& bytes) {
  bytes.write("name,dtype,shape,bytes\n");
  for (const Member& member : members) {
    bytes.write(concat(csv_field(member.name), ',', csv_field(member.dtype), ',',
                       member.shape ? csv_field(to_string(*member.shape)) : "", ',',
                       member.bytes ? std::to_string(*member.bytes) : "", '\n'));
  }
}

}  // namespace lnorm
