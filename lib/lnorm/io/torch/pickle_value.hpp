#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace lnorm {

// A value's number in its pickle.
using PickleId = std::uint32_t;

enum class PickleKind : std::uint8_t {
  none,
  boolean,     // integer: 0 or 1
  integer,     // integer
  string,      // text
  global,      // text: the name of a class or of a function, "collections.OrderedDict"
  persistent,  // items: what stands for something outside of the pickle
  tuple,       // items
  list,        // items
  dict,        // items: key, value, key, value, ...
  call,        // items: what is called, and a tuple of its arguments; nothing has been called
  other,       // a float, bytes, or an integer of more than 64 bits
};

struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::int64_t integer = 0;
  std::string text = {};
  std::vector<PickleId> items = {};
};

// What a pickle says, as values that name each other. A value may be named several times, and may hold itself.
struct Pickle {
  std::deque<PickleValue> values;
  PickleId root = 0;

  const PickleValue& operator[](PickleId id) const { return values[id]; }
};

}  // namespace lnorm
