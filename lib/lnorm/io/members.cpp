#include "lnorm/io/members.hpp"

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

std::string short_list(std::size_t size, const std::function<std::string(std::size_t)>& name) {
  constexpr std::size_t kMost = 200;
  std::string list = size == 0 ? "nothing" : "";
  for (std::size_t i = 0; i < size && !list.ends_with("..."); ++i) {
    const std::string next = name(i);
    const bool fits = list.size() <= kMost && next.size() <= kMost;
    list += concat(i == 0 ? "" : ", ", !fits ? "..." : next.empty() ? "''" : printable(next));
  }
  return list;
}

std::string short_name(std::string_view name) {
  constexpr std::size_t kMost = 100;
  return concat(printable(name.substr(0, kMost)), name.size() > kMost ? "..." : "");
}

std::string hint_to_name(std::string_view file, std::string_view member) {
  return hint_to_name(concat(file, ':', member));
}

std::string hint_to_name(std::string_view file_and_member) {
  constexpr std::string_view kStandardInput = "standard input:";
  constexpr std::size_t kMost = 200;  // a longer one nobody types
  if (file_and_member.size() > kMost) return "";
  std::string word(file_and_member);
  if (word.starts_with(kStandardInput)) word.replace(0, kStandardInput.size(), "-:");
  return concat("name one: ", shell_word(word));
}

std::size_t choose_member(const std::string& file, std::size_t size,
                          const std::function<std::string(std::size_t)>& name,
                          const std::optional<std::string>& member) {
  if (!member && size == 1) return 0;
  for (std::size_t i = 0; member && i < size; ++i) {
    if (name(i) == *member) return i;
  }
  const std::string names = short_list(size, name);
  if (member) {
    throw Error(
        concat(printable(file), ": there is no member '", short_name(*member), "', only ", names));
  }
  throw Error(concat(printable(file), ": found ", size, " tensors, ", names, ", expected one"),
              size == 0 ? "" : hint_to_name(file, name(0)));
}

}  // namespace lnorm
