#include "member_table.hpp"

#include <algorithm>
#include <string>

#include "lnorm/core/shape.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

// Longer entries stand out of their column; otherwise one would make every line as long.
constexpr std::size_t kWidestColumn = 60;

// In characters, of UTF-8.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(std::string text, std::size_t columns) {
  text.append(columns - std::min(columns, width(text)), ' ');
  return text;
}

}  // namespace

void write_member_table(const std::vector<Member>& members, ByteSink& out) {
  std::size_t name_width = 0;
  std::size_t dtype_width = 0;
  for (const Member& member : members) {
    name_width = std::max(name_width, width(printable(member.name)));
    if (member.shape) dtype_width = std::max(dtype_width, width(printable(member.dtype)));
  }
  name_width = std::min(name_width, kWidestColumn);
  dtype_width = std::min(dtype_width, kWidestColumn);
  for (const Member& member : members) {
    std::string line = padded(printable(member.name), name_width) + "  ";
    line += member.shape ? padded(member.dtype, dtype_width) + "  " + to_string(*member.shape)
                         : printable(member.dtype);
    out.write(line + "\n");
  }
}

}  // namespace lnorm::app
