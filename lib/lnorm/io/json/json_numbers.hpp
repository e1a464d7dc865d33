#pragma once

#include <string_view>

#include "lnorm/core/in_parallel.hpp"
#include "lnorm/io/json/json_reader.hpp"

namespace lnorm {

// Reads a large list of numbers, nested as a tensor is, in slices by several threads; it takes no memory but for the
// elements and a slice a thread. tensor: has its dtype, and gets shape and elements. False, and the tensor stays as it is, if
// the text is small or something else: JsonReader reads it, or says what is wrong.
bool read_json_numbers(std::string_view list, JsonTensor& tensor, const InParallel& in_parallel);

}  // namespace lnorm
