#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"

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

  // Text as lines, each with its newline, that are no wider than the place; all are indented by so much, and all but the
  // first by one more. A longer word has a line of its own.
  std::string folded(std::string_view text, std::size_t indent = 0) const;

 private:
  std::string escaped(std::string_view escape, std::string_view text) const {
    if (!color) return std::string(text);
    return std::string(escape).append(text).append("\x1b[0m");
  }
};

// The lines of a report for people.
class TextWriter {
 public:
  TextWriter(const Style& style, ByteSink& bytes) : style_(style), bytes_(bytes) {}

  const Style& style() const noexcept { return style_; }

  void raw(std::string_view text) { bytes_.write(text); }

  // A line as wide as it is.
  template <class... Parts>
  void line(const Parts&... parts) {
    bytes_.write(concat(parts..., '\n'));
  }

  // Lines no wider than the place.
  template <class... Parts>
  void folded(const Parts&... parts) {
    bytes_.write(style_.folded(concat(parts...)));
  }

  // A long list, which has the usual width where lines may be of any.
  template <class... Parts>
  void filled(const Parts&... parts) {
    bytes_.write(
        Style{.utf8 = style_.utf8, .width = style_.filled_width()}.folded(concat(parts...)));
  }

  // Colors text as what is bad; the color ends before the last line does.
  template <class... Parts>
  void bad(const Parts&... parts) {
    std::string text = style_.folded(concat(parts...));
    text.pop_back();
    line(style_.bad(text));
  }

 private:
  Style style_;
  ByteSink& bytes_;
};

}  // namespace lnorm
