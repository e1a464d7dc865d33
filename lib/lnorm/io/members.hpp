#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace lnorm {

// Names for an error message: as many as fit into a line or two, printable, with commas between them.
std::string short_list(std::size_t size, const std::function<std::string(std::size_t)>& name);

// A name for an error message, printable and not too long.
std::string short_name(std::string_view name);

// The end of the name of an input that is JSON on the command line, if it is not the whole of it.
inline constexpr std::string_view kCutLiteral = "...";

// The word of a shell by which the command line names a member (or a line of JSON Lines). file: as in messages.
std::string member_word(std::string_view file, std::string_view member);

// Says how the command line names a member (or a line of JSON Lines), unless that is too long for a line. file:
// as in messages.
std::string hint_to_name(std::string_view file, std::string_view member);
std::string hint_to_name(std::string_view file_and_member);

// Asks, where a member is not there, whether the nearest of those that are was meant. It is empty
// if none is near.
std::string hint_to_nearest(std::string_view file, const std::string& nearest);

// A hint in which 'FILE' stands for a file. file: as in messages.
std::string hint_about(const std::string& file, std::string hint);

}  // namespace lnorm
