#pragma once

#include <string>

#include "generate/description.hpp"

namespace lnorm::app {

// Manual pages in the language of man(7).
std::string manual_of(const ProgramDescription& program);
std::string manual_of(const CommandDescription& command);

// Completion scripts. Each knows the commands, their options and what values these have, and asks
// lnorm --generate names for the tensors of FILE in FILE:.
std::string bash_completion(const ProgramDescription& program);
std::string zsh_completion(const ProgramDescription& program);
std::string fish_completion(const ProgramDescription& program);

}  // namespace lnorm::app
