#pragma once

#include <span>
#include <string>
#include <string_view>

#include "arguments.hpp"
#include "lnorm/pipeline/inputs.hpp"

namespace lnorm::app {

// Each runs one command and returns the exit status; throws Error or ClosedPipe.
int apply(const Arguments& arguments);
int stats(const Arguments& arguments);
int compare(const Arguments& arguments);
int check(const Arguments& arguments);
int mutants(const Arguments& arguments);
int inputs(const Arguments& arguments);
int softmax(const Arguments& arguments);
int convert(const Arguments& arguments);
int grad(const Arguments& arguments);
int explain(const Arguments& arguments);
int show(const Arguments& arguments);
int report(const Arguments& arguments);

// What inputs is asked to make.
InputsOptions inputs_options(const Arguments& arguments);
// The manifest of what was made. extension: of the files that tensors are in; empty where they are members of one.
std::string manifest_of(const MadeInputs& made, const InputsOptions& options,
                        const std::string& extension);

// A row of the one table of commands.
struct CommandRow {
  Command command;
  std::string_view name;
  std::string_view help;
  std::string_view puts_out;  // the group of options that say what the command puts out, and how
  int (*run)(const Arguments&);
  bool on_all_ranks;        // or on rank 0 alone
  std::string_view called;  // by other tools
  std::string_view examples;
  std::string_view usage = {};  // in place of COMMAND [INPUT...]
};

// The first one is the default.
std::span<const CommandRow> all_commands();
const CommandRow& command_row(Command command);
// Null if there is none of that name.
const CommandRow* find_command(std::string_view name);

// "lnorm stats --help lists the options"
std::string hint_of(Command command);

}  // namespace lnorm::app
