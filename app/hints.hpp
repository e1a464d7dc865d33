#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

// What to try where a word of the command line is none of ours.
namespace lnorm::app {

// For who wants another shape of a tensor.
inline constexpr char kKeepsShape[] =
    "a tensor keeps its shape; --axes or --normalized-shape chooses the normalized axes";

// Null if there is none of that name.
const CLI::App* find_command(const CLI::App& program, const std::string& name);

// For an option that a command does not have: the nearest that it has, ours for another tool's word, or the
// commands that have it.
std::string hint_for_option(const CLI::App& command, const std::string& word);

// Whether a word is an option of the command, or one that hint_for_option knows, but for a dash: "-eps".
bool lacks_dash(const CLI::App& command, const std::string& word);

// For a word in the place of a command: the nearest one, or ours for another tool's word.
std::string hint_for_command(const CLI::App& program, const std::string& word);

}  // namespace lnorm::app
