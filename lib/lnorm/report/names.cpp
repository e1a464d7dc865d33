#include "lnorm/report/names.hpp"

#include <algorithm>

#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

bool begins_character(char c) { return (c & 0xc0) != 0x80; }

// Where the character of a number begins.
std::size_t place_of(std::string_view text, std::size_t number) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if (begins_character(text[at]) && number-- == 0) break;
  }
  return at;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string padded(std::string text, std::size_t width) {
  text.append(width - std::min(width, width_of(text)), ' ');
  return text;
}

std::string shortened(std::string_view name, std::size_t width) {
  constexpr std::string_view kGap = "...";
  const std::size_t all = width_of(name);
  if (all <= width || width <= kGap.size()) return std::string(name);
  const std::size_t kept = width - kGap.size();
  const std::size_t end = kept / 2;
  return concat(name.substr(0, place_of(name, kept - end)), kGap,
                name.substr(place_of(name, all - end)));
}

}  // namespace lnorm
