#include <string_view>

#include "generate/description.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

// Behind the lists of words, which are generated.
constexpr std::string_view kFunctions = R"(
# Those of the words that begin with $1. They replace what is behind the last : or = of the word, where bash
# takes words apart.
_lnorm_reply() {
  local start=$1 candidate
  shift
  for candidate; do
    [[ $candidate == "$start"* ]] && COMPREPLY+=("$uncut${candidate#"$cut"}")
  done
}

_lnorm_files() {
  local candidate
  compopt -o filenames 2>/dev/null
  while IFS= read -r candidate; do
    _lnorm_reply "$1" "$candidate"
  done < <(compgen -f -- "$1")
}

# FILE, or FILE:NAME, a tensor of it.
_lnorm_tensors() {
  local file=${1%%:*} name
  local path=$file
  [[ $file == '~/'* ]] && path=$HOME/${file#'~/'}
  if [[ $1 != *:* || ! -f $path ]]; then
    _lnorm_files "$1"
    return
  fi
  while IFS= read -r name; do
    _lnorm_reply "${1//\\/}" "$file:$name"
  done < <("$program" --generate names "$path" 2>/dev/null)
  local i
  for i in "${!COMPREPLY[@]}"; do
    printf -v 'COMPREPLY[i]' %q "${COMPREPLY[i]}"
  done
}

_lnorm() {
  # The words as the shell sees them, without the cuts at : and = that COMP_WORDS has.
  local words=() rest=$COMP_LINE i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if ((i == 0)) || [[ $rest == [[:space:]]* ]]; then
      words+=("${COMP_WORDS[i]}")
    else
      words[-1]+=${COMP_WORDS[i]}
    fi
    rest=${rest#*"${COMP_WORDS[i]}"}
  done
  local program=${words[0]} word=${words[-1]} option="" cut="" uncut=""
  ((${#words[@]} > 2)) && option=${words[-2]}
  COMPREPLY=()
  if [[ $word == --*=* ]]; then
    option=${word%%=*}
    [[ $COMP_WORDBREAKS == *=* ]] || uncut=$option=
    word=${word#*=}
  fi
  if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
    cut=${word%"${word##*:}"}
  fi
  local commands='' alone='' options='' choices='' kind=''
  _lnorm_words "${words[1]}" "$option"
  case $kind in
    choices) _lnorm_reply "$word" $choices ;;
    path) _lnorm_files "$word" ;;
    tensor) _lnorm_tensors "$word" ;;
    other) ;;
    *)
      if [[ $word == -* && $word != -:* ]]; then
        ((${#words[@]} == 2)) && _lnorm_reply "$word" $alone
        _lnorm_reply "$word" $options
      else
        ((${#words[@]} == 2)) && _lnorm_reply "$word" $commands
        _lnorm_tensors "$word"
      fi
      ;;
  esac
}

complete -F _lnorm lnorm
)";

std::string kind_of(const OptionDescription& option) {
  if (!option.choices().empty()) {
    return concat("kind=choices choices='", joined(option.choices(), " "), "'");
  }
  if (option.takes_path()) return "kind=path";
  return option.takes_tensor() ? "kind=tensor" : "kind=other";
}

std::string words_of(const CommandDescription& command) {
  std::vector<std::string> names;
  std::string cases;
  for (const OptionDescription& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
    if (option.type.empty()) continue;
    cases += concat("        ", joined(option.names, " | "), ") ", kind_of(option), " ;;\n");
  }
  std::string text = concat("      options='", joined(names, " "), "'\n");
  if (!cases.empty()) text += concat("      case $2 in\n", cases, "      esac\n");
  return text + "      ;;\n";
}

}  // namespace

std::string bash_completion(const ProgramDescription& program) {
  std::vector<std::string> names;
  std::string cases;
  for (const CommandDescription& command : program.commands) {
    names.push_back(command.name);
    if (&command != &program.commands.front()) {
      cases += concat("    ", command.name, ")\n", words_of(command));
    }
  }
  // The first command is the one that runs without a name.
  cases += concat("    *)\n", words_of(program.commands.front()));
  return concat(
      "# Completion of lnorm in bash, written by lnorm --generate bash.\n\n"
      "# Of the command $1: its options, and of its option $2: what kind of value it takes.\n"
      "_lnorm_words() {\n"
      "  commands='",
      joined(names, " "), "'\n  alone='", joined(program.own_option().names, " "),
      "'\n  case $1 in\n", cases, "  esac\n}\n", kFunctions);
}

}  // namespace lnorm::app
