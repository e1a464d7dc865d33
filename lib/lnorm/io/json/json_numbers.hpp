#pragma once

#include <optional>
#include <string_view>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/in_parallel.hpp"
#include "lnorm/core/raw_bytes.hpp"
#include "lnorm/core/shape.hpp"

namespace lnorm {

struct JsonNumbers {
  Shape shape;
  RawBytes elements;
};

// A large list of numbers, nested as a tensor is, read in slices by several threads; it takes no memory but for the
// elements and a slice a thread. Nothing if the text is small or something else: JsonReader reads it, or says what is
// wrong.
std::optional<JsonNumbers> read_json_numbers(std::string_view list, DType dtype,
                                             const InParallel& in_parallel);

}  // namespace lnorm
