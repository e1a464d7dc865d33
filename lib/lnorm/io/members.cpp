#include "lnorm/io/members.hpp"

#include "lnorm/core/text.hpp"

namespace lnorm {

std::string short_list(std::size_t size, const std::function<std::string(std::size_t)>& name) {
  constexpr std::size_t kMax = 200;
  std::string list = size == 0 ? "nothing" : "";
  for (std::size_t i = 0; i < size && !list.ends_with("..."); ++i) {
    const std::string next = name(i);
    const bool fits = list.size() <= kMax && next.size() <= kMax;
    list += concat(i == 0 ? "" : ", ", !fits ? "..." : next.empty() ? "''" : printable(next));
  }
  return list;
}

std::string short_name(std::string_view name) {
  constexpr std::size_t kMax = 100;
  return concat(printable(name.substr(0, kMax)), name.size() > kMax ? "..." : "");
}

namespace {

std::string word_of(std::string_view file_and_member) {
  constexpr std::string_view kStandardInput = "standard input:";
  std::string word(file_and_member);
  if (word.starts_with(kStandardInput)) word.replace(0, kStandardInput.size(), "-:");
  return shell_word(word);
}

}  // namespace

std::string member_word(std::string_view file, std::string_view member) {
  return word_of(concat(file, ':', member));
}

std::string hint_to_name(std::string_view file, std::string_view member) {
  return hint_to_name(concat(file, ':', member));
}

std::string hint_to_name(std::string_view file_and_member) {
  constexpr std::size_t kMax = 200;  // a longer one nobody types
  const bool is_cut = file_and_member.find(concat(kCutLiteral, ':')) != file_and_member.npos;
  return file_and_member.size() > kMax || is_cut ? ""
                                                 : concat("name one: ", word_of(file_and_member));
}

std::string hint_to_nearest(std::string_view file, const std::string& nearest) {
  return nearest.empty() ? "" : concat("did you mean ", member_word(file, nearest), "?");
}

std::string hint_about(const std::string& file, std::string hint) {
  constexpr std::string_view kFile = "FILE";
  constexpr std::string_view kFromTo = " < 'FILE' > 'FILE.json'";
  const bool is_literal = file.starts_with('[') || file.starts_with('{');
  if ((file == "standard input" || is_literal) && hint.ends_with(kFromTo)) {
    return concat(hint.substr(0, hint.size() - kFromTo.size()), " in a pipe, before lnorm");
  }
  if (file == "standard input" || file.find('\'') != file.npos) return hint;
  for (std::size_t at = 0; (at = hint.find(kFile, at)) != hint.npos; at += file.size()) {
    hint.replace(at, kFile.size(), file);
  }
  return hint;
}

}  // namespace lnorm
