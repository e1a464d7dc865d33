#include "lnorm/report/style.hpp"

#include <algorithm>

#include "lnorm/core/text.hpp"

namespace lnorm {

std::string Style::folded(std::string_view text) const {
  const auto most = static_cast<std::size_t>(std::max(width, 1));
  std::string lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t end =
        std::min(text.find(' ', 1), text.size());  // of a word and the blank before it
    if (!line.empty() && character_count(line) + character_count(text.substr(0, end)) > most) {
      lines += line + '\n';
      line.assign(1, ' ');
    }
    line += text.substr(0, end);
    text.remove_prefix(end);
  }
  return lines + line + '\n';
}

}  // namespace lnorm
