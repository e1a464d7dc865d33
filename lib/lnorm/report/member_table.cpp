#include <cstdint>
#include <limits>
#include <vector>

#include "lnorm/core/number.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/record.hpp"
#include "lnorm/report/reports.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

// Longer entries stand out of their column; otherwise one would make every line as long.
constexpr std::size_t kWidestColumn = 60;

struct ByteTotal {
  Int128 bytes = 0;  // of the tensors whose size is known
  std::int64_t tensors = 0;
  std::int64_t unknown = 0;  // of these
  std::int64_t others = 0;   // what cannot be read as a tensor

  explicit ByteTotal(std::span<const Member> members) {
    for (const Member& member : members) {
      bytes += member.bytes.value_or(0);
      ++(member.shape ? tensors : others);
      if (member.shape && !member.bytes) ++unknown;
    }
  }

  // Headers may claim more than that.
  bool is_countable() const { return bytes <= std::numeric_limits<std::int64_t>::max(); }
  std::int64_t count() const { return static_cast<std::int64_t>(bytes); }
};

Record record_of(const Member& member) {
  return {{"name", member.name},
          {"dtype", member.dtype},
          {"shape", member.shape},
          {"bytes", member.bytes}};
}

}  // namespace

void write_text(std::span<const Member> members, ByteSink& bytes) {
  TextWriter text({}, bytes);
  if (members.empty()) return text.line("no tensors");
  const ByteTotal total(members);
  std::vector<TableLine> lines;
  for (const Member& member : members) {
    TableLine& line = lines.emplace_back(TableLine{printable(member.name), {}});
    if (member.shape) {
      line.cells = {printable(member.dtype), to_string(*member.shape),
                    member.bytes ? bytes_text(*member.bytes) : ""};
    } else {
      line.remark = printable(member.dtype);  // which may be a long reason
    }
  }
  const Table table(
      {"", "", Align::left, kWidestColumn},
      {{"", "", Align::left, kWidestColumn}, {"", "", Align::left, kWidestColumn}, {}},
      each_of(lines));
  table.write(text, Style::kAnyWidth);
  text.line(
      counted(total.tensors, "tensor"),
      total.is_countable() && total.unknown < total.tensors ? ", " + bytes_text(total.count()) : "",
      total.unknown > 0 ? concat(", ", total.unknown, " of unknown size") : "",
      total.others > 0 ? concat("; ", total.others, " that cannot be read") : "");
}

void write_json(std::span<const Member> members, ByteSink& bytes) {
  JsonList list("show", {}, "tensors", bytes);
  const ByteTotal total(members);
  for (const Member& member : members) list.add(record_of(member));
  list.finish({{"summary.tensors", members.size()},
               {"summary.bytes", total.is_countable() ? Value(total.count()) : Value()}});
}

void write_csv(std::span<const Member> members, ByteSink& bytes) {
  bytes.write(csv_names(record_of(Member())));
  for (const Member& member : members) bytes.write(csv_line(record_of(member)));
}

}  // namespace lnorm
