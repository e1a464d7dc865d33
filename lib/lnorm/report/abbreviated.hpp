#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lnorm {

// A name of at most that many characters of UTF-8, at least 5: "..." stands for the middle of its longest parts between
// dots and slashes, so that numbers of layers stay; where that is not enough, for the middle of all.
std::string abbreviated(std::string_view name, std::size_t most);

}  // namespace lnorm
