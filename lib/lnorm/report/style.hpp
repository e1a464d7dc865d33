#pragma once

#include <limits>
#include <string>
#include <string_view>

namespace lnorm {

// What the place that a report goes to can show.
struct Style {
  bool color = false;  // ANSI escapes
  bool utf8 = false;
  int width = kUsualWidth;  // of lines, in characters

  static constexpr int kUsualWidth = 80;
  static constexpr int kAnyWidth = std::numeric_limits<int>::max();  // as wide as a line needs

  // The width of what fills a line, such as bars.
  int filled_width() const { return width == kAnyWidth ? kUsualWidth : width; }

  std::string heading(std::string_view text) const { return escaped("\x1b[1m", text); }
  std::string good(std::string_view text) const { return escaped("\x1b[32m", text); }
  std::string bad(std::string_view text) const { return escaped("\x1b[31m", text); }

  // Text as lines, each with its newline, that are no wider than the place; all but the
  // first are indented. A longer word has a line of its own.
  std::string folded(std::string_view text) const;

 private:
  std::string escaped(std::string_view escape, std::string_view text) const {
    if (!color) return std::string(text);
    return std::string(escape).append(text).append("\x1b[0m");
  }
};

}  // namespace lnorm
