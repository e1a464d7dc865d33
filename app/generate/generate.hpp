#pragma once

#include <span>

namespace CLI {
class App;
}

namespace lnorm::app {

// lnorm --generate WHAT, which help does not show. Writes to standard output:
//   man            the manual page lnorm(1)
//   man COMMAND    lnorm-COMMAND(1)
//   bash|zsh|fish  the completion script of that shell
//   names FILE     the tensors of a file, a line each, which the completions ask for; nothing if it has
//                  none that are named
// program has the options of all commands. Returns the exit status; throws Error.
int generate(const CLI::App& program, std::span<const char* const> words);

}  // namespace lnorm::app
