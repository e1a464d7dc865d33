#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/commands.hpp"

namespace support {

// Calls on_line with each line of the blocks of a language, and on_other with all other lines, fences too.
template <class OnLine, class OnOther>
void for_each_line(const std::string& markdown, const std::string& language, OnLine on_line,
                   OnOther on_other) {
  bool inside = false;
  bool wanted = false;
  for (const std::string& line : lines_of(markdown)) {
    const bool is_fence = line.starts_with("```");
    if (is_fence) {
      inside = !inside;
      wanted = inside && line == "```" + language;
    }
    if (wanted && !is_fence) {
      on_line(line);
    } else {
      on_other(line);
    }
  }
}

// The blocks of a language, without their fences.
inline std::vector<std::vector<std::string>> blocks(const std::string& markdown,
                                                    const std::string& language) {
  std::vector<std::vector<std::string>> found;
  bool is_new = true;
  for_each_line(
      markdown, language,
      [&](const std::string& line) {
        if (std::exchange(is_new, false)) found.emplace_back();
        found.back().push_back(line);
      },
      [&](const std::string&) { is_new = true; });
  return found;
}

}  // namespace support
