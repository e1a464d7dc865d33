#include "lnorm/core/pattern.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// The bytes of the character at a position, which may be none of UTF-8.
std::size_t character_size(std::string_view text, std::size_t at) noexcept {
  std::size_t size = 1;
  while (size < 4 && at + size < text.size() && (text[at + size] & 0xc0) == 0x80) ++size;
  return size;
}

// One step of a pattern: a character, ?, or [...].
struct Step {
  std::size_t size;       // in the pattern
  std::size_t taken = 0;  // of the name; 0: it does not match
};

Step step_through_class(std::string_view pattern, std::string_view found) {
  std::size_t at = 1;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  const std::size_t first = at;
  bool contains = false;
  while (at < pattern.size() && (pattern[at] != ']' || at == first)) {
    const std::size_t size = character_size(pattern, at);
    const std::string_view low = pattern.substr(at, size);
    std::string_view high = low;
    at += size;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      const std::size_t high_size = character_size(pattern, at + 1);
      high = pattern.substr(at + 1, high_size);
      at += 1 + high_size;
    }
    // UTF-8 keeps the order of characters.
    contains = contains || (low <= found && found <= high);
  }
  if (at >= pattern.size()) return {1, found == "[" ? std::size_t{1} : 0};  // it is not closed
  return {at + 1, contains != negated ? found.size() : 0};
}

// The name is not at its end.
Step step(std::string_view pattern, std::string_view name) {
  const std::string_view found = name.substr(0, character_size(name, 0));
  if (pattern[0] == '?') return {1, found.size()};
  if (pattern[0] == '[') return step_through_class(pattern, found);
  return {1, name[0] == pattern[0] ? std::size_t{1} : 0};
}

// The N of "{N}" or "{}" at the start of a text: 0 for the latter.
struct Placeholder {
  std::size_t number;
  std::size_t size;
};

std::optional<Placeholder> placeholder_at(std::string_view text) noexcept {
  if (text.starts_with("{}")) return Placeholder{0, 2};
  if (text.size() < 3 || text[0] != '{' || !is_digit(text[1]) || text[1] == '0') return {};
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data() + text.size() || *end != '}') return {};
  return Placeholder{number, static_cast<std::size_t>(end - text.data()) + 1};
}

// The digits at a position, without leading zeros.
std::string_view number_at(std::string_view text, std::size_t& at) noexcept {
  const std::size_t start = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  std::string_view number = text.substr(start, at - start);
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

}  // namespace

bool is_pattern(std::string_view text) noexcept {
  return text.find_first_of("*?[") != std::string_view::npos;
}

std::optional<Captures> match(std::string_view pattern, std::string_view name) {
  // Where the last * is, and where in the name what follows it was last tried. An earlier * never has to take
  // more: the later one can take the same characters.
  struct Star {
    std::size_t in_pattern;
    std::size_t start;
    std::size_t tried;
  };
  std::vector<Star> stars;
  std::size_t p = 0;
  std::size_t n = 0;
  while (true) {
    if (p < pattern.size() && pattern[p] == '*') {
      stars.push_back({p++, n, n});
      continue;
    }
    if (p == pattern.size() && n == name.size()) break;
    if (p < pattern.size() && n < name.size()) {
      const Step next = step(pattern.substr(p), name.substr(n));
      if (next.taken > 0) {
        p += next.size;
        n += next.taken;
        continue;
      }
    }
    if (stars.empty() || stars.back().tried >= name.size()) return std::nullopt;
    Star& star = stars.back();
    star.tried += character_size(name, star.tried);
    p = star.in_pattern + 1;
    n = star.tried;
  }
  Captures captures;
  for (const Star& star : stars) {
    captures.emplace_back(name.substr(star.start, star.tried - star.start));
  }
  return captures;
}

bool has_placeholder(std::string_view text) noexcept {
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    if (placeholder_at(text.substr(at))) return true;
  }
  return false;
}

std::string substitute(std::string_view text, std::string_view name, const Captures& captures,
                       std::string_view where) {
  std::string result;
  while (!text.empty()) {
    const std::size_t brace = std::min(text.find('{'), text.size());
    result += text.substr(0, brace);
    text.remove_prefix(brace);
    if (text.empty()) break;
    const auto placeholder = placeholder_at(text);
    if (!placeholder) {
      result += '{';
      text.remove_prefix(1);
      continue;
    }
    if (placeholder->number > captures.size()) {
      throw Error(concat(printable(where), ": {", placeholder->number, "} stands for * number ",
                         placeholder->number, " of a pattern, found ",
                         captures.empty() ? "no *" : concat("only ", captures.size())));
    }
    result += placeholder->number == 0 ? name : captures[placeholder->number - 1];
    text.remove_prefix(placeholder->size);
  }
  return result;
}

bool natural_less(std::string_view a, std::string_view b) noexcept {
  // What both begin with does not count, but for digits of a number that goes on.
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  auto i = static_cast<std::size_t>(differ.first - a.begin());
  while (i > 0 && is_digit(a[i - 1])) --i;
  std::size_t j = i;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view x = number_at(a, i);
      const std::string_view y = number_at(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a[i] != b[j]) {
      return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
    }
    ++i;
    ++j;
  }
  if (i == a.size() && j == b.size()) return a < b;
  return i == a.size();
}

}  // namespace lnorm
