#pragma once

#include <span>
#include <string>
#include <vector>

#include "arguments.hpp"

// The command line as it is described to others: what the tables of commands and options say of it.
namespace lnorm::app {

// lnorm --generate WHAT, which help does not show. Writes to standard output:
//   man            the manual page lnorm(1)
//   man COMMAND    lnorm-COMMAND(1)
//   bash|zsh|fish  the completion script of that shell
//   names FILE     the tensors of a file, a line each, which the completions ask for; nothing if it has
//                  none that are named
// Returns the exit status; throws Error.
int generate(const Program& program, std::span<const char* const> words);

struct OptionDescription {
  std::vector<std::string> names;  // "-o", "--output"
  std::string type;                // what its help calls the value; empty for a flag
  std::string help;
  std::string group;

  // What its type says of the value: the words of "npy|json", a path, or a tensor that may be in a file.
  std::vector<std::string> choices() const;
  bool takes_path() const { return type == "PATH" || type == "DIR"; }
  bool takes_tensor() const { return type == "T"; }
};

struct CommandDescription {
  std::string name;
  std::string help;
  std::string usage;  // without "Usage: "
  std::string footer;
  std::vector<OptionDescription> options;
};

struct ProgramDescription {
  CommandDescription program;
  std::vector<CommandDescription> commands;

  // The option that stands alone, --version, which no command has.
  const OptionDescription& own_option() const { return program.options.back(); }
};

ProgramDescription describe(const Program& program);

// Manual pages in the language of man(7).
std::string manual_of(const ProgramDescription& program);
std::string manual_of(const CommandDescription& command);

// Completion scripts. Each knows the commands, their options and what values these have, and asks
// lnorm --generate names for the tensors of FILE in FILE:.
std::string bash_completion(const ProgramDescription& program);
std::string zsh_completion(const ProgramDescription& program);
std::string fish_completion(const ProgramDescription& program);

}  // namespace lnorm::app
