#pragma once

namespace lnorm::app {

// What main does, once the process is set up: runs the command line, complains on standard error where that
// fails. Returns the exit status. May be called again, if standard output is there again.
int run_program(int argc, const char* const* argv);

}  // namespace lnorm::app
