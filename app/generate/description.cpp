#include "generate/description.hpp"

#include <cctype>
#include <string>
#include <string_view>

#include "arguments.hpp"
#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "options.hpp"
#include "report_output.hpp"

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

std::string names_in(const std::string& file) {
  std::string lines;
  for (const Selected& tensor : select_tensors(file, {}).tensors) {
    const std::string name = tensor.set->tensor_name(tensor.index);
    // One that cannot be typed as it is, in a line, is not for completion.
    if (!name.empty() && printable(name) == name) lines += name + "\n";
  }
  return lines;
}

std::string generated(const Program& described, std::span<const char* const> words) {
  const ProgramDescription program = describe(described);
  const std::string_view what = words.empty() ? "" : words[0];
  if (what == "man" && words.size() == 1) return manual_of(program);
  if (what == "man" && words.size() == 2) {
    for (const CommandDescription& command : program.commands) {
      if (command.name == words[1]) return manual_of(command);
    }
  }
  if (what == "bash" && words.size() == 1) return bash_completion(program);
  if (what == "zsh" && words.size() == 1) return zsh_completion(program);
  if (what == "fish" && words.size() == 1) return fish_completion(program);
  if (what == "names" && words.size() == 2) return names_in(words[1]);
  throw Error("--generate takes man, man COMMAND, bash, zsh, fish or names FILE");
}

}  // namespace

std::vector<std::string> OptionDescription::choices() const {
  std::vector<std::string> words;
  // Words that stand for others (PATH, N, D[,D...]) are written in capitals.
  if (type.empty() || std::islower(static_cast<unsigned char>(type[0])) == 0) return words;
  for (const std::string_view word : split(type, '|')) {
    const std::size_t colon = word.find(':');  // group:K
    words.emplace_back(word.substr(0, colon == word.npos ? colon : colon + 1));
  }
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

int generate(const Program& program, std::span<const char* const> words) {
  const std::string text = generated(program, words);
  save_report("", "-", [&](ByteSink& out) { out.write(text); });
  return 0;
}

}  // namespace lnorm::app
