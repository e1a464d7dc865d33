#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace lnorm {

// Appends a part as a stream would print it. A stream takes longer to make than most messages take.
template <class Part>
void append_part(std::string& text, const Part& part) {
  if constexpr (std::is_convertible_v<const Part&, std::string_view>) {
    text += std::string_view(part);
  } else if constexpr (std::is_same_v<Part, char>) {
    text += part;
  } else if constexpr (std::is_same_v<Part, int> || std::is_same_v<Part, long> ||
                       std::is_same_v<Part, long long> || std::is_same_v<Part, unsigned> ||
                       std::is_same_v<Part, unsigned long> ||
                       std::is_same_v<Part, unsigned long long>) {
    text += std::to_string(part);
  } else {
    std::ostringstream out;
    out << part;
    text += std::move(out).str();
  }
}

// The parts, one after another.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string text;
  (append_part(text, parts), ...);
  return text;
}

// Whether the text is well-formed UTF-8.
bool is_utf8(std::string_view text) noexcept;

// Text that came from outside, safe to print on one line: controls as \n, \t, \x1b or \u0085, bytes that are not UTF-8 as \xff,
// noncharacters, which XML and HTML do not allow, as \ufffe, and a backslash as two. No two texts are printed alike.
std::string printable(std::string_view text);

// How many characters text in UTF-8 has, each of which begins with such a byte.
inline bool begins_character(char byte) noexcept { return (byte & 0xc0) != 0x80; }
std::size_t character_count(std::string_view text) noexcept;

// Replaces A to Z by a to z.
std::string lower_case(std::string_view text);

// The text as one word of a shell: quoted where it must be, as $'a\nb' where it cannot be printed.
std::string shell_word(std::string_view text);

// Text that came from outside, as the text of an element of HTML or XML, or the value of an attribute in double quotes. What
// cannot be printed is shown as in messages.
std::string escaped(std::string_view text);

// The English plural of a counted noun: counted(1, "byte") is "1 byte", counted(3, "byte") "3
// bytes".
std::string counted(long long count, std::string_view noun);

// The number of the fewest digits within an error of it, which is not below 0.
std::string shortest_text(double number, double error);

// A factor with four digits; where it is nearly 1, four of what it is beside that.
std::string factor_text(double factor);

// "a, b or c", where last is " or ".
template <class Words>
std::string listed(const Words& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += concat(i == 0 ? "" : i + 1 == words.size() ? last : ", ", words[i]);
  }
  return text;
}

// The words of items, with a text between each two. An item without a word is left out.
template <class Items = std::initializer_list<std::string>, class WordOf = std::identity>
std::string joined(const Items& items, std::string_view between, WordOf word_of = {}) {
  std::string text;
  for (const auto& item : items) {
    const auto& word = word_of(item);
    if (!word.empty()) text.append(text.empty() ? "" : between).append(word);
  }
  return text;
}

}  // namespace lnorm
