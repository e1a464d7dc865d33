#pragma once

#include <span>
#include <string>
#include <string_view>

#include "arguments.hpp"
#include "options.hpp"

namespace lnorm::app {

bool is_file(const std::string& name);

// Returns what to try in place of a word that is no command: the nearest one, or ours for another tool's word.
std::string hint_for_command(std::string_view word);

// Throws Error: a command has no such option.
[[noreturn]] void fail_option(Command command, const std::string& word);

// Throws Error for what CLI11 would take for something else: "-output y.npy" for "-o utput", an option for another's value.
void check_words(Command command, std::span<const char* const> argv);

// Throws Error where options contradict each other, or one does nothing, by the table of options.
void check_options(const Arguments& arguments);

// Throws Error if --round or --zero-centered-weight has no effect: there is no residual, weight or bias.
void check_affine_options(const Arguments& arguments);

// Throws Error where the arguments do not go together, or some are missing. Takes the inputs.
void check_arguments(Arguments& arguments);

}  // namespace lnorm::app
