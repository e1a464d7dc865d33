#pragma once

#include <string>
#include <string_view>

#include "lnorm/core/error.hpp"

namespace lnorm::app {

// What CapturedOutputs calls standard error.
inline constexpr const char* kStandardError = "standard error";

// Writes "lnorm: message" to standard error.
void print_note(std::string_view message);

// What to try: the hint of the error, and the option that is its remedy.
std::string hint_of(const Error& error);

// Writes the message, and a second line with the hint if there is one.
// Returns the exit status of work that could not be done.
int print_error(std::string_view message, std::string_view hint = {});
int print_error(const Error& error);

}  // namespace lnorm::app
