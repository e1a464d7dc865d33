#pragma once

#include <string>
#include <string_view>

#include "arguments.hpp"

// What to try where a word of the command line is none of ours.
namespace lnorm::app {

// Returns what to try in place of an option that a command does not have: the nearest that it has,
// ours for another tool's word, or the commands that have it.
std::string hint_for_option(Command command, std::string_view word);

// Whether a word is an option of the command, or one that hint_for_option knows, but for a dash: "-eps".
bool lacks_dash(Command command, std::string_view word);

// Returns what to try in place of a word that is no command: the nearest one, or ours for another
// tool's word.
std::string hint_for_command(std::string_view word);

}  // namespace lnorm::app
