#include "lnorm/report/names.hpp"

#include <algorithm>
#include <vector>

#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::string_view kGap = "...";
constexpr std::size_t kMin = kGap.size() + 2;

// Where a character begins, or the text ends.
std::size_t place_of(std::string_view text, std::size_t character) {
  std::size_t place = 0;
  while (place < text.size() && (begins_character(text[place]) ? character-- : 1) > 0) ++place;
  return place;
}

std::string without_middle(std::string_view text, std::size_t most) {
  const std::size_t count = character_count(text);
  if (count <= most) return std::string(text);
  const std::size_t kept = most - kGap.size();
  const std::size_t last = kept / 2;
  return concat(text.substr(0, place_of(text, kept - last)), kGap,
                text.substr(place_of(text, count - last)));
}

}  // namespace

std::string padded(std::string text, std::size_t width) {
  text.append(width - std::min(width, character_count(text)), ' ');
  return text;
}

std::string abbreviated(std::string_view name, std::size_t most) {
  std::size_t count = character_count(name);
  if (count <= most) return std::string(name);
  if (count > 4 * most) return without_middle(name, most);
  // Parts, each with the dot or slash before it.
  std::vector<std::string> parts;
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of("./", 1), rest.size());
    parts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  while (count > most) {
    const auto longest = std::max_element(parts.begin(), parts.end(),
                                          [](const std::string& a, const std::string& b) {
                                            return character_count(a) < character_count(b);
                                          });
    const std::size_t length = character_count(*longest);
    if (length <= kMin + 1) return without_middle(name, most);
    const std::size_t shorter = std::max(kMin + 1, length - std::min(length, count - most));
    *longest = without_middle(*longest, shorter);
    count -= length - shorter;
  }
  std::string result;
  for (const std::string& part : parts) result += part;
  return result;
}

}  // namespace lnorm
