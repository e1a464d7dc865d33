#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lnorm/core/error.hpp"

namespace lnorm {

inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
inline constexpr std::string_view kJsonBlanks = " \t\r\n";

// The text behind the byte order mark that it may begin with.
std::string_view behind_mark(std::string_view text);

// Drops the blanks of JSON at either end.
std::string_view trimmed_json(std::string_view text);

// The text goes on after its value, with another value on a line of its own: JSON Lines, it seems.
class MoreLines : public Error {
 public:
  using Error::Error;
};

// Says how lines of numbers, of which text is the start, become JSON, perhaps without a line of names and a column of labels; empty
// if they do not.
std::string hint_for_table(const std::string& file, std::string_view text);

// A JSON text and its name: what messages need to say where something is. Positions are pointers into
// the text. All that fails throws Error("name:line:column: what"), columns counted in characters.
class JsonText {
 public:
  // line: the number of the text's first line.
  JsonText(std::string name, std::string_view text, std::int64_t line = 1)
      : name_(std::move(name)), text_(text), line_(line) {}

  const std::string& name() const noexcept { return name_; }
  std::string_view text() const noexcept { return text_; }
  const char* begin() const noexcept { return text_.data(); }
  const char* end() const noexcept { return text_.data() + text_.size(); }

  std::string_view from(const char* at) const noexcept {
    return {at, static_cast<std::size_t>(end() - at)};
  }

  // The start of what stands there, quoted.
  std::string found(const char* at) const;

  bool is_blank_from(const char* at) const noexcept { return trimmed_json(from(at)).empty(); }

  // Behind the bracket that closes the one at start, or null.
  const char* end_of_value(const char* start) const noexcept;

  // The first bracket from start on with which the nesting is deeper than that, or null.
  const char* deeper_than(std::size_t most, const char* start) const noexcept;

  [[noreturn]] void fail(const char* at, std::string_view what, std::string hint = {}) const;
  // Says that a string does not end, or has a control character in it.
  [[noreturn]] void fail_string() const;
  // at: behind the value, where blanks may come first.
  [[noreturn]] void fail_after_value(const char* at) const;
  // Says that the text is not valid UTF-8, and names the first line that is not.
  [[noreturn]] void fail_utf8() const;

 private:
  std::string message(const char* at, std::string_view what) const;

  std::string name_;
  std::string_view text_;
  std::int64_t line_;
};

}  // namespace lnorm
