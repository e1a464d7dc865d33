#pragma once

#include <string_view>

namespace lnorm::app {

// Writes "lnorm: message" to standard error.
void print_note(std::string_view message);

// The same, and a second line with the hint if there is one.
// Returns the exit status of work that could not be done.
int print_error(std::string_view message, std::string_view hint = {});

}  // namespace lnorm::app
