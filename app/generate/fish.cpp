#include <string_view>

#include "generate/description.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

constexpr std::string_view kFishStart =
    R"(# Completion of lnorm in fish, written by lnorm --generate fish.

# Whether the command line is one of the command given.
function __lnorm_runs
    set -l words (commandline -opc)
    set -l command $words[2]
    contains -- "$command" $__lnorm_commands; or set command $__lnorm_commands[1]
    test $command = $argv[1]
end

# The tensors of FILE where the word is FILE:NAME.
function __lnorm_tensors
    set -l words (commandline -opc)
    set -l word (string unescape -- (commandline -ct))
    # The value may be in one word with its option.
    set -l word (string replace -r -- '^--[^=:]*=' '' "$word")
    string match -q -- '*:*' "$word"; or return
    set -l file (string split -m 1 -f 1 -- : "$word")
    set -l path (string replace -r -- '^~/' "$HOME/" "$file")
    test -f "$path"; or return
    for name in ($words[1] --generate names "$path" 2>/dev/null)
        echo $file:$name
    end
end

complete -c lnorm -n '__lnorm_tensors | string length -q' -f -a '(__lnorm_tensors)'
)";

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish_value(const OptionDescription& option) {
  if (option.type.empty()) return "";
  if (option.takes_path()) return " -r -F";
  const std::string words = joined(option.choices(), " ");
  return words.empty() ? " -x" : concat(" -x -a ", in_quotes(words));
}

std::string line_of(const OptionDescription& option, std::string_view condition,
                    std::string_view value) {
  std::string line = concat("complete -c lnorm -n '", condition, "'");
  for (const std::string& name : option.names) {
    line +=
        name.starts_with("--") ? concat(" -l ", name.substr(2)) : concat(" -s ", name.substr(1));
  }
  return concat(line, value, " -d ", in_quotes(option.help), "\n");
}

}  // namespace

std::string fish_completion(const ProgramDescription& program) {
  std::string names;
  std::string lines = line_of(program.own_option(), "__fish_is_first_token", "");
  for (const CommandDescription& command : program.commands) {
    names += " " + command.name;
    lines += concat("complete -c lnorm -n __fish_is_first_token -a ", command.name, " -d ",
                    in_quotes(command.help), "\n");
    const std::string runs = concat("__lnorm_runs ", command.name);
    for (const OptionDescription& option : command.options) {
      if (!option.takes_tensor()) {
        lines += line_of(option, runs, fish_value(option));
        continue;
      }
      // No files behind "FILE:".
      const std::string in_file = "__lnorm_tensors | string length -q";
      lines += line_of(option, concat(runs, "; and ", in_file), " -x -a '(__lnorm_tensors)'");
      lines += line_of(option, concat(runs, "; and not ", in_file), " -r -F");
    }
  }
  // The first command is the one that runs without a name.
  return concat(kFishStart, "set -g __lnorm_commands", names, "\n", lines);
}

}  // namespace lnorm::app
