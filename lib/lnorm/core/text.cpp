#include "lnorm/core/text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>

namespace lnorm {

namespace {

struct Character {
  std::size_t length = 0;
  unsigned point = 0;
};

// The UTF-8 sequence that text begins with; its length is 0 where there is none [RFC 3629].
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const int length = std::countl_one(static_cast<unsigned char>(lead));
  if (length < 2 || length > 4) return {};
  unsigned point = lead & 0x7fu >> length;
  for (int i = 1; i < length; ++i) {
    const unsigned next = byte(static_cast<std::size_t>(i));
    if ((next & 0xc0) != 0x80) return {};
    point = point << 6 | (next & 0x3f);
  }
  constexpr unsigned kMin[] = {0, 0, 0x80, 0x800, 0x10000};  // below that the form is overlong
  const bool is_surrogate = point >= 0xd800 && point < 0xe000;
  if (point < kMin[length] || point > 0x10ffff || is_surrogate) return {};
  return {static_cast<std::size_t>(length), point};
}

// C1 controls, which terminals take as commands, and noncharacters.
bool needs_escape(unsigned point) {
  return (point >= 0x7f && point < 0xa0) || (point >= 0xfdd0 && point < 0xfdf0) ||
         (point & 0xfffe) == 0xfffe;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = first_character(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  // Most names are so, and a list may have thousands.
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    return std::string(text);
  }
  std::string out;
  while (!text.empty()) {
    const auto [length, point] = first_character(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte == '\\') {
      out += "\\\\";
    } else if (length == 0 || byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else if (needs_escape(point)) {
      out += point > 0xffff ? "\\U" : "\\u";
      for (int shift = point > 0xffff ? 28 : 12; shift >= 0; shift -= 4)
        out += kHex[point >> shift & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::size_t character_count(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "%+,-./:=@_";
  const auto is_plain = [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) != 0 || kPlain.find(c) != kPlain.npos;
  };
  const bool is_printable = printable(text) == text;
  if (is_printable && !text.empty() && std::all_of(text.begin(), text.end(), is_plain))
    return std::string(text);
  if (!is_printable) {
    std::string bytes;  // each escaped by itself: \u means bytes in a locale of UTF-8 only
    for (const char& c : text) {
      bytes += c == '\'' ? "\\'" : printable(std::string_view(&c, 1));
    }
    return concat("$'", bytes, "'");
  }
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string counted(long long count, std::string_view noun) {
  return concat(count, ' ', noun, count == 1 ? "" : "s");
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "&<>\"'";
  constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  std::string result;
  for (const char& c : printable(text)) {
    const std::size_t found = kSpecial.find(c);
    result += found == kSpecial.npos ? std::string_view(&c, 1) : kEntities[found];
  }
  return result;
}

std::string shortest_text(double number, double error) {
  for (int digits = 1;; ++digits) {
    std::array<char, 32> buffer{};
    char* const end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                    std::chars_format::general, digits)
                          .ptr;
    double read = 0;
    std::from_chars(buffer.data(), end, read);
    if (digits < 17 && std::fabs(read - number) > error) continue;
    constexpr double kPlain = 1e15;  // whole numbers have no exponent
    const bool is_plain = std::trunc(read) == read && std::fabs(read) < kPlain;
    return is_plain ? std::to_string(static_cast<long long>(read))
                    : std::string(buffer.data(), end);
  }
}

std::string factor_text(double factor) {
  const double beside = std::fabs(factor - 1);
  const bool is_near = beside > 0 && beside < 1e-3;
  std::ostringstream text;
  const int zeros = is_near ? -static_cast<int>(std::floor(std::log10(beside))) : 0;
  text.precision(std::min(4 + zeros, 17));
  text << factor;
  return std::move(text).str();
}

}  // namespace lnorm
