#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "lnorm/core/float16.hpp"
#include "lnorm/core/float8.hpp"

namespace lnorm {

// Room for the longest number.
using JsonNumberBuffer = std::span<char, 32>;

// The shortest decimal that reads back as the same value of its type, laid out as Python's repr
// does: 0.1, 1.0, -0.0, 1e-05, 1e+16. NaN and infinities as Python's json writes them: NaN,
// Infinity, -Infinity. The result lies in the buffer.
std::string_view json_number(double value, JsonNumberBuffer buffer);
std::string_view json_number(float value, JsonNumberBuffer buffer);
std::string_view json_number(Float8E4M3 value, JsonNumberBuffer buffer);
std::string_view json_number(Float8E5M2 value, JsonNumberBuffer buffer);
std::string_view json_number(Float16 value, JsonNumberBuffer buffer);
std::string_view json_number(BFloat16 value, JsonNumberBuffer buffer);

}  // namespace lnorm
