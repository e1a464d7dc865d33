#include "generate/description.hpp"

#include <CLI/CLI.hpp>
#include <cctype>
#include <sstream>
#include <string_view>

namespace lnorm::app {

namespace {

std::string usage_of(const CLI::App& command) {
  constexpr std::string_view kUsage = "Usage: ";
  std::istringstream help(command.help());
  for (std::string line; std::getline(help, line);) {
    if (line.starts_with(kUsage)) return line.substr(kUsage.size());
  }
  return command.get_name();
}

OptionDescription describe_option(const CLI::Option& option) {
  OptionDescription result;
  for (const std::string& name : option.get_snames()) result.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) result.names.push_back("--" + name);
  if (option.get_expected_max() > 0) result.type = option.get_type_name();
  result.help = option.get_description();
  result.group = option.get_group();
  return result;
}

CommandDescription describe_command(const CLI::App& command) {
  CommandDescription result{
      command.get_name(), command.get_description(), usage_of(command), command.get_footer(), {}};
  for (const CLI::Option* option : command.get_options()) {
    const bool hidden = option->get_group().empty();
    if (!hidden && option->nonpositional()) result.options.push_back(describe_option(*option));
  }
  return result;
}

}  // namespace

std::vector<std::string> OptionDescription::choices() const {
  std::vector<std::string> words;
  // Words that stand for others (PATH, N, D[,D...]) are written in capitals.
  if (type.empty() || std::islower(static_cast<unsigned char>(type[0])) == 0) return words;
  std::istringstream text(type);
  for (std::string word; std::getline(text, word, '|');) words.push_back(word);
  return words;
}

std::vector<OptionDescription> ProgramDescription::own_options() const {
  std::vector<OptionDescription> own;
  for (const OptionDescription& option : program.options) {
    if (option.names.back() != "--help") own.push_back(option);
  }
  return own;
}

ProgramDescription describe(const CLI::App& program) {
  ProgramDescription result{describe_command(program), {}};
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    result.commands.push_back(describe_command(*command));
  }
  return result;
}

}  // namespace lnorm::app
