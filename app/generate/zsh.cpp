#include <string_view>

#include "generate/description.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

constexpr std::string_view kZshStart = R"(#compdef lnorm
# Completion of lnorm in zsh, written by lnorm --generate zsh.

# FILE, or FILE:NAME, a tensor of it.
_lnorm_tensors() {
  local file=${(Q)PREFIX%%:*}
  [[ $file == '~/'* ]] && file=$HOME/${file#'~/'}
  if [[ $PREFIX == *:* && -f $file ]]; then
    local -a names=("${(@f)$($program --generate names $file 2>/dev/null)}")
    compset -P 1 '*:'
    compadd -a names
  else
    _files
  fi
}

_lnorm() {
  local program=${(Q)words[1]} command=
  local -a commands options
)";

constexpr std::string_view kChoice = R"(
  if (( CURRENT > 2 )) && (( ${commands[(I)${(b)words[2]}:*]} )); then
    command=$words[2]
    shift words
    (( CURRENT-- ))
  elif (( CURRENT == 2 )) && [[ $PREFIX != -* ]]; then
    _describe command commands
  fi
)";

constexpr std::string_view kZshEnd = R"(
  _arguments -S $options '*:tensor:_lnorm_tensors'
}

# Read as a file, it is the function itself; otherwise it says what it is for.
if [[ $funcstack[1] == _lnorm ]]; then
  _lnorm "$@"
else
  compdef _lnorm lnorm
fi
)";

// In single quotes, with a backslash before what has a meaning there.
std::string in_quotes(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
      continue;
    }
    if (c == '\\' || special.find(c) != special.npos) result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_value(const OptionDescription& option) {
  if (option.type.empty()) return "";
  const std::string words = joined(option.choices(), " ");
  if (!words.empty()) return concat(":value:(", words, ")");
  const std::string type = in_quotes(option.type, ":");
  if (option.takes_path()) return concat(":", type, ":_files");
  return concat(":", type, option.takes_tensor() ? ":_lnorm_tensors" : ": ");
}

std::string options_of(const std::vector<OptionDescription>& options) {
  std::string text = "options+=(\n";
  for (const OptionDescription& option : options) {
    const std::string all = joined(option.names, " ");
    for (const std::string& name : option.names) {
      const std::string_view joint =
          option.type.empty() ? "" : (name.starts_with("--") ? "=" : "+");
      text += concat("      '(", all, ")", name, joint, "[", in_quotes(option.help, "[]"), "]",
                     zsh_value(option), "'\n");
    }
  }
  return text + "    )";
}

}  // namespace

std::string zsh_completion(const ProgramDescription& program) {
  std::string commands = "  commands=(\n";
  std::string cases = "  case $command in\n";
  for (const CommandDescription& command : program.commands) {
    commands += concat("    '", command.name, ":", in_quotes(command.help, ":"), "'\n");
    if (&command != &program.commands.front()) {
      cases += concat("    ", command.name, ") ", options_of(command.options), " ;;\n");
    }
  }
  // The first command is the one that runs without a name.
  cases +=
      concat("    *) ", options_of(program.commands.front().options), " ;;\n  esac\n",
             "  [[ -z $command ]] && (( CURRENT == 2 )) && ", options_of({program.own_option()}));
  return concat(kZshStart, commands, "  )", kChoice, cases, kZshEnd);
}

}  // namespace lnorm::app
