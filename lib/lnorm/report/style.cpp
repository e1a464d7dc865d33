#include "lnorm/report/style.hpp"

#include <algorithm>

namespace lnorm {

namespace {

// In characters, without escapes.
std::size_t width_of(std::string_view text) {
  std::size_t width = character_count(text);
  for (std::size_t at = 0; (at = text.find('\x1b', at)) != text.npos;) {
    const std::size_t end = std::min(text.find('m', at), text.size() - 1) + 1;
    width -= end - at;
    at = end;
  }
  return width;
}

}  // namespace

std::string Style::folded(std::string_view text, std::size_t indent) const {
  const auto most = static_cast<std::size_t>(std::max(width, 1));
  std::string lines;
  std::string line(indent, ' ');
  while (!text.empty()) {
    const std::size_t end =
        std::min(text.find(' ', 1), text.size());  // of a word and the blank before it
    if (line.size() > indent && width_of(line) + width_of(text.substr(0, end)) > most) {
      lines += line + '\n';
      line.assign(indent + 1, ' ');
    }
    line += text.substr(0, end);
    text.remove_prefix(end);
  }
  return lines + line + '\n';
}

}  // namespace lnorm
