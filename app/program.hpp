#pragma once

namespace lnorm::app {

// Runs the command line in a process that is set up, and complains on standard error if that fails. Returns
// the exit status. May be called again if standard output is there again.
int run_program(int argc, const char* const* argv);

}  // namespace lnorm::app
