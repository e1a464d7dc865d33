#pragma once

#include <string>

#include "arguments.hpp"
#include "lnorm/pipeline/ranks.hpp"

namespace lnorm::app {

// How a command line ended: with an exit status, and what is still to be said of an error. Of another rank's error nothing is.
struct Ending {
  int status = 0;
  std::string message;  // empty if there is none
  std::string hint;
};

// Runs the command line in a process that is set up. If there are several processes, all get the same command line. It can
// be called again once standard output is open again.
Ending run_command(int argc, const char* const* argv, const Program& program, Ranks& ranks);

// Runs the program in a process that is alone: complains on standard error if it fails. Returns the exit status.
int run_program(int argc, const char* const* argv);

// Sets up memory, standard streams and signals for a process that is alone, may be anywhere in a pipe, and leaves no temporary file behind.
void set_up_process();

}  // namespace lnorm::app
