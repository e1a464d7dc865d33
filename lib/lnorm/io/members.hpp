#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lnorm/io/tensor_set.hpp"

namespace lnorm {

// What a file of several tensors holds.
struct Members {
  std::size_t size;
  std::function<Member(std::size_t index)> at;
};

// Names for an error message: as many as fit into a line or two, printable, with commas between them.
std::string short_list(std::size_t size, const std::function<std::string(std::size_t)>& name);

// A name for an error message, printable and not too long.
std::string short_name(std::string_view name);

// Says how the command line names a member (or a line of JSON Lines), unless that is too long for a line. file:
// as in messages.
std::string hint_to_name(std::string_view file, std::string_view member);
std::string hint_to_name(std::string_view file_and_member);

// The index of the member named, or of the only one. Throws Error, which begins with file and lists what
// there is, if there is no such one, or if several are there and none is named. name: of an index.
std::size_t choose_member(const std::string& file, std::size_t size,
                          const std::function<std::string(std::size_t)>& name,
                          const std::optional<std::string>& member);

}  // namespace lnorm
