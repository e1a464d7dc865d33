#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Names of tensors in columns of text.
namespace lnorm {

// In characters, of UTF-8.
std::size_t width_of(std::string_view text);

// Followed by blanks up to a width.
std::string padded(std::string text, std::size_t width);

// Of a longer name its beginning and its end, with ... between them: where names of a model differ.
std::string shortened(std::string_view name, std::size_t width);

}  // namespace lnorm
