#include "generate/description.hpp"

#include <cctype>

#include "arguments.hpp"
#include "commands.hpp"
#include "options.hpp"

namespace lnorm::app {

namespace {

OptionDescription describe_option(const Option& option, std::string_view group) {
  OptionDescription result{.names = {},
                           .type = option.value_text(),
                           .help = std::string(option.help),
                           .group = std::string(group)};
  for (const std::string_view name : split(option.names, ',')) result.names.emplace_back(name);
  return result;
}

}  // namespace

std::vector<std::string> OptionDescription::choices() const {
  std::vector<std::string> words;
  // Words that stand for others (PATH, N, D[,D...]) are written in capitals.
  if (type.empty() || std::islower(static_cast<unsigned char>(type[0])) == 0) return words;
  for (const std::string_view word : split(type, '|')) words.emplace_back(word);
  return words;
}

ProgramDescription describe(const Program& program) {
  constexpr std::string_view kOwn = "Options";  // as CLI11 calls the group of these two
  const OptionDescription help = describe_option(*find_option(kAllCommands, "--help"), kOwn);
  const OptionDescription version{
      {"-V", "--version"}, "", "Display program version information and exit", std::string(kOwn)};
  ProgramDescription result{
      {program.name, program.overview, program.usage(nullptr), program.footer(), {help, version}},
      {}};
  for (const CommandRow& row : all_commands()) {
    CommandDescription& command =
        result.commands.emplace_back(CommandDescription{std::string(row.name),
                                                        std::string(row.help),
                                                        program.usage(&row),
                                                        std::string(row.examples),
                                                        {help}});
    for (const Option& option : all_options()) {
      if ((option.commands & row.command) == 0 || option.set == nullptr) continue;
      command.options.push_back(
          describe_option(option, option.group.empty() ? row.puts_out : option.group));
    }
  }
  return result;
}

}  // namespace lnorm::app
