#pragma once

#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>

namespace lnorm {

// The parts, streamed one after another into one string.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

// Whether the text is well-formed UTF-8.
bool is_utf8(std::string_view text) noexcept;

// Text that came from outside, safe to print on one line: control characters, and bytes that are not
// UTF-8, as \n, \t or \x1b.
std::string printable(std::string_view text);

// How many characters text in UTF-8 has, each of which begins with such a byte.
inline bool begins_character(char byte) noexcept { return (byte & 0xc0) != 0x80; }
std::size_t character_count(std::string_view text) noexcept;

// With a to z for A to Z.
std::string lower_case(std::string_view text);

// The text as one word of a shell: quoted where it must be, as $'a\nb' where it cannot be printed.
std::string shell_word(std::string_view text);

// The English plural of a counted noun: counted(1, "byte") is "1 byte", counted(3, "byte") "3
// bytes".
std::string counted(long long count, std::string_view noun);

}  // namespace lnorm
