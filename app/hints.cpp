#include "hints.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "commands.hpp"
#include "lnorm/core/nearest.hpp"
#include "lnorm/core/text.hpp"
#include "options.hpp"

namespace lnorm::app {

namespace {

// "--layer_norm_eps=1" is "layer-norm-eps".
std::string canonical(std::string_view word) {
  word = word.substr(0, word.find('='));
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string result = lower_case(word);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

bool contains(std::string_view words, std::string_view word) {
  const auto all = split(words, ' ');
  return !word.empty() && std::find(all.begin(), all.end(), word) != all.end();
}

// Without dashes.
std::vector<std::string> long_names(Commands commands) {
  std::vector<std::string> names;
  for (const Option& option : all_options()) {
    if ((option.commands & commands) == 0) continue;
    for (const std::string_view name : split(option.names, ',')) {
      if (name.starts_with("--")) names.emplace_back(name.substr(2));
    }
  }
  return names;
}

bool has_long_name(Command command, const std::string& name) {
  return find_option(command, concat("--", name)) != nullptr;
}

// An option of ours that a word of another tool stands for.
struct Meaning {
  std::string_view option;  // empty: there is none
  std::string_view hint;
};

// The first one in these commands, or the last one of all.
Meaning meaning_of(std::string_view word, std::optional<Command> command) {
  Meaning found;
  for (const Option& option : all_options()) {
    for (const Called& called : option.called) {
      if (!contains(called.words, word)) continue;
      found = {called.name.empty() ? option.name() : called.name, called.hint};
      const Commands in = called.in == 0 ? option.commands : called.in;
      if (command && (in & *command) != 0) return found;
    }
  }
  return command ? Meaning{} : found;
}

// "lnorm stats", "lnorm apply, stats and softmax"; empty if no command has the option.
std::string commands_with(std::string_view option) {
  std::vector<std::string_view> names;
  for (const CommandRow& row : all_commands()) {
    if (find_option(row.command, option) != nullptr) names.push_back(row.name);
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "lnorm " : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

// Whether other commands write their output to what the word names.
bool names_output(const std::string& word) {
  if (word == "o" || word == "output") return true;
  return meaning_of(word, kApply).option == "-o";
}

std::string is_an_option(std::string_view option) {
  return concat(option, " is an option of ", commands_with(option));
}

}  // namespace

std::string hint_for_option(Command command, std::string_view word) {
  const std::string name = canonical(word);
  if (has_long_name(command, name)) return concat("did you mean --", name, "?");
  if (const Meaning meaning = meaning_of(name, command); !meaning.option.empty()) {
    return meaning.hint.empty() ? concat("here it is ", meaning.option) : std::string(meaning.hint);
  }
  if (names_output(name)) {
    return find_option(command, "--page") == nullptr
               ? "the result goes to standard output: > FILE"
               : "the report goes to standard output: > FILE; --page writes a page";
  }
  const std::string option = concat(name.size() == 1 ? "-" : "--", name);
  if (!commands_with(option).empty()) return is_an_option(option);
  // The command has none of the options that the word may stand for.
  const std::string_view other = meaning_of(name, {}).option;
  if (!other.empty()) return is_an_option(other);
  std::vector<std::string> candidates = long_names(command);
  candidates.emplace_back("version");
  const std::string near = nearest(name, candidates);
  if (near == "version") return "lnorm --version";  // of the program, not of a command
  if (!near.empty()) return concat("did you mean --", near, "?");
  const std::string elsewhere = nearest(name, long_names(kAllCommands), Nearness::strict);
  if (!elsewhere.empty()) return is_an_option(concat("--", elsewhere));
  return hint_of(command);
}

bool lacks_dash(Command command, std::string_view word) {
  if (word.size() < 3 || word[0] != '-' || word[1] == '-' || word == "-help") return false;
  const std::string name = canonical(word);
  return has_long_name(command, name) || !meaning_of(name, command).option.empty();
}

std::string hint_for_command(std::string_view word) {
  const std::string name = canonical(word);
  if (name == "help" || name == "version") return concat("here it is lnorm --", name);
  if (name == "rmsnorm" || name == "rms-norm") return "here it is lnorm apply --rms";
  std::vector<std::string> names;
  for (const CommandRow& row : all_commands()) {
    if (contains(row.called, name)) return concat("here it is lnorm ", row.name);
    names.emplace_back(row.name);
  }
  const std::string near = nearest(name, names);
  return near.empty() ? "lnorm --help lists the commands"
                      : concat("did you mean lnorm ", near, "?");
}

}  // namespace lnorm::app
