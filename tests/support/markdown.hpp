#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace support {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

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
