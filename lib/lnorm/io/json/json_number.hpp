#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "lnorm/core/float16.hpp"
#include "lnorm/core/float8.hpp"

namespace lnorm {

// Room for the longest number.
inline constexpr std::size_t kJsonNumberRoom = 32;

// Writes the shortest decimal that reads back as the same value of its type, laid out as Python's repr
// does: 0.1, 1.0, -0.0, 1e-05, 1e+16. NaN and infinities as Python's json writes them: NaN,
// Infinity, -Infinity. to has kJsonNumberRoom. Returns the end.
char* put_json_number(double value, char* to);
char* put_json_number(float value, char* to);
char* put_json_number(Float8E4M3 value, char* to);
char* put_json_number(Float8E5M2 value, char* to);
char* put_json_number(Float16 value, char* to);
char* put_json_number(BFloat16 value, char* to);

// The same. The result lies in the buffer.
template <class T>
std::string_view json_number(T value, std::span<char, kJsonNumberRoom> buffer) {
  const char* const end = put_json_number(value, buffer.data());
  return {buffer.data(), static_cast<std::size_t>(end - buffer.data())};
}

}  // namespace lnorm
