#include "lnorm/io/members.hpp"

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

void NameList::add(std::string_view name) {
  constexpr std::size_t kMostText = 200;
  if (full_) return;
  if (empty_) text_.clear();
  full_ = text_.size() > kMostText;
  if (!empty_) text_ += ", ";
  text_ += full_ || name.size() > kMostText ? "..." : name.empty() ? "''" : printable(name);
  empty_ = false;
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
  std::string word = printable(file_and_member);
  if (word.starts_with(kStandardInput)) word.replace(0, kStandardInput.size(), "-:");
  return concat("name one: ", shell_word(word));
}

std::size_t choose_member(const std::string& file, std::size_t size,
                          const std::function<std::string(std::size_t)>& name,
                          const std::optional<std::string>& member) {
  if (!member && size == 1) return 0;
  NameList names;
  for (std::size_t i = 0; i < size; ++i) {
    const std::string found = name(i);
    if (member == found) return i;
    names.add(found);
  }
  if (member) {
    throw Error(concat(printable(file), ": there is no member '", short_name(*member), "', only ",
                       names.text()));
  }
  throw Error(
      concat(printable(file), ": found ", size, " tensors, ", names.text(), ", expected one"),
      size == 0 ? "" : hint_to_name(file, name(0)));
}

}  // namespace lnorm
