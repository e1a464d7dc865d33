#pragma once

#include <simdjson.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "lnorm/core/dtype.hpp"
#include "lnorm/core/raw_bytes.hpp"
#include "lnorm/core/small_float.hpp"

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
char* put_json_number(Float8E4M3Fnuz value, char* to);
char* put_json_number(Float8E8M0 value, char* to);
char* put_json_number(Float16 value, char* to);
char* put_json_number(BFloat16 value, char* to);

// Writes the number into the buffer, and returns where it is there.
template <class T>
std::string_view json_number(T value, std::span<char, kJsonNumberRoom> buffer) {
  const char* const end = put_json_number(value, buffer.data());
  return {buffer.data(), static_cast<std::size_t>(end - buffer.data())};
}

// Appends the bytes of a JSON number, rounded once to the dtype, to elements. Floats take NaN,
// Infinity, -Infinity and null (a NaN), too; bool takes true, false, 0 and 1. Returns false, and
// appends nothing, if the value is something else or beyond the dtype's range.
bool append_json_element(simdjson::ondemand::value& value, DType dtype, RawBytes& elements);

// Reads all elements of a list to the front of to. Returns how many there are; nothing if one is something
// else, or if there is no room.
std::optional<std::size_t> read_json_list(simdjson::ondemand::array& list, DType dtype,
                                          std::span<std::byte> to);

}  // namespace lnorm
