#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

// The command line as it is described to others: taken from what CLI11 has been told, so that manual and
// completions cannot say anything else.
namespace lnorm::app {

struct OptionDescription {
  std::vector<std::string> names;  // "-o", "--output"
  std::string type;                // what its help calls the value; empty for a flag
  std::string help;
  std::string group;

  // What its type says of the value: the words of "npy|json", a path, or a tensor that may be in a file.
  std::vector<std::string> choices() const;
  bool takes_path() const { return type == "PATH"; }
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

  // The options that stand alone: those of the program that no command has, --version.
  std::vector<OptionDescription> own_options() const;
};

ProgramDescription describe(const CLI::App& program);

// Manual pages in the language of man(7).
std::string manual_of(const ProgramDescription& program);
std::string manual_of(const CommandDescription& command);

// Completion scripts. Each knows the commands, their options and what values these have, and asks
// lnorm --generate names for the tensors of FILE in FILE:.
std::string bash_completion(const ProgramDescription& program);
std::string zsh_completion(const ProgramDescription& program);
std::string fish_completion(const ProgramDescription& program);

}  // namespace lnorm::app
