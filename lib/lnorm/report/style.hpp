#pragma once

#include <string>
#include <string_view>

namespace lnorm {

// What the place that a report goes to can show.
struct Style {
  bool color = false;  // ANSI escapes
  bool utf8 = false;
  int width = 80;  // in characters

  std::string heading(std::string_view text) const { return escaped("\x1b[1m", text); }
  std::string good(std::string_view text) const { return escaped("\x1b[32m", text); }
  std::string bad(std::string_view text) const { return escaped("\x1b[31m", text); }

  // Text without escapes as lines, each with its newline, that are no wider than the place; all but the
  // first are indented. A longer word has a line of its own.
  std::string folded(std::string_view text) const;

 private:
  std::string escaped(std::string_view escape, std::string_view text) const {
    if (!color) return std::string(text);
    return std::string(escape).append(text).append("\x1b[0m");
  }
};

}  // namespace lnorm
