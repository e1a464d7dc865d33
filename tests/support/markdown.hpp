#pragma once

#include <string>
#include <vector>

#include "support/commands.hpp"

namespace support {

// The blocks of a language, without their fences.
inline std::vector<std::vector<std::string>> blocks(const std::string& markdown,
                                                    const std::string& language) {
  std::vector<std::vector<std::string>> found;
  bool inside = false;
  bool wanted = false;
  for (const std::string& line : lines_of(markdown)) {
    if (line.starts_with("```")) {
      inside = !inside;
      wanted = inside && line == "```" + language;
      if (wanted) found.emplace_back();
    } else if (wanted) {
      found.back().push_back(line);
    }
  }
  return found;
}

}  // namespace support
