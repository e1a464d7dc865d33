#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Names by pattern, as a shell knows them, and what a pattern stood for in other names.
namespace lnorm {

// Whether a name has one of the characters that mean something in a pattern: * ? [
bool is_pattern(std::string_view text) noexcept;

// What every * of a pattern stood for.
using Captures = std::vector<std::string>;

// Matches a whole name: * is any characters, also none and also '/', ? is one character, [a-c] one of these,
// [!a-c] one of the others; a [ that is not closed stands for itself. Characters are those of UTF-8. Of several
// ways each * takes as few characters as it can, the first one first. Nothing if the name does not match. The
// time is at most the product of both lengths.
std::optional<Captures> match(std::string_view pattern, std::string_view name);

// The text with a tensor's name for every {}, and captures[N - 1] for every {N}. Other braces stay. Throws Error,
// which says what and begins with where, for an {N} without such a capture.
std::string substitute(std::string_view text, std::string_view name, const Captures& captures,
                       std::string_view where);

// Whether substitute would change the text, or throw.
bool has_placeholder(std::string_view text) noexcept;

// Whether a comes before b in an order in which numbers count as numbers: h.2 before h.10. A strict weak order;
// names that differ in leading zeros alone are in the order of their characters.
bool natural_less(std::string_view a, std::string_view b) noexcept;

}  // namespace lnorm
