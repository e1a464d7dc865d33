#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/shape.hpp"
#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// A dtype of safetensors. Those that lnorm does not have are known by the bytes they take.
struct SafetensorsDType {
  std::string_view name;
  std::int64_t bits = 0;
  std::optional<DType> dtype = {};
};

inline constexpr std::array kUnsupportedSafetensorsDTypes{
    SafetensorsDType{"C64", 64},
    SafetensorsDType{"F4", 4},
    SafetensorsDType{"F6_E2M3", 6},
    SafetensorsDType{"F6_E3M2", 6},
    SafetensorsDType{"F8_E5M2FNUZ", 8},
    SafetensorsDType{"F8_*", 8},  // there is a new one every few months
};

// Those of the table of dtypes, then the others.
inline constexpr auto kSafetensorsDTypes = [] {
  std::array<SafetensorsDType, kDTypes.size() + kUnsupportedSafetensorsDTypes.size()> all{};
  auto* const others =
      std::transform(kDTypes.begin(), kDTypes.end(), all.begin(), [](const DTypeRow& row) {
        return SafetensorsDType{row.safetensors, static_cast<std::int64_t>(8 * row.size),
                                row.dtype};
      });
  std::copy(kUnsupportedSafetensorsDTypes.begin(), kUnsupportedSafetensorsDTypes.end(), others);
  return all;
}();

// Null if there is none of that name.
inline const SafetensorsDType* find_safetensors_dtype(std::string_view name) {
  for (const SafetensorsDType& entry : kSafetensorsDTypes) {
    if (!name.empty() && entry.name == name) return &entry;
  }
  return name.starts_with("F8_") ? &kSafetensorsDTypes.back() : nullptr;
}

struct SafetensorsEntry {
  std::int64_t begin = 0;  // of its elements, behind the header
  std::int64_t end = 0;
  const SafetensorsDType* dtype = nullptr;
  std::uint32_t name_at = 0;
  std::uint32_t name_size = 0;
  std::uint32_t extents_at = 0;
  std::uint32_t ndim = 0;
};

// The tensors that a header names. There may be a million: names and extents lie one behind another.
struct SafetensorsHeader {
  std::string names;
  std::vector<std::int64_t> extents;
  std::vector<SafetensorsEntry> tensors;

  std::string_view name(const SafetensorsEntry& tensor) const {
    return std::string_view(names).substr(tensor.name_at, tensor.name_size);
  }
  Shape shape(const SafetensorsEntry& tensor) const {
    const auto first = extents.begin() + tensor.extents_at;
    return {first, first + tensor.ndim};
  }

  // The bytes of all elements.
  std::int64_t data_bytes() const { return tensors.empty() ? 0 : tensors.back().end; }
};

// Reads what stands before the elements. The tensors are in the order of their elements, which follow one
// another without gaps. Throws Error if the header is not well formed, or not that of a source of so many
// bytes, where that is known.
SafetensorsHeader read_safetensors_header(ByteSource& bytes);

// The JSON of it, so many bytes; the tensors are in the order of the text. Throws Error unless it has exactly
// the form that the format has: every name once, and for every tensor offsets that are as far apart as its
// shape and dtype ask.
SafetensorsHeader parse_safetensors_header(ByteSource& bytes, std::size_t size);

}  // namespace lnorm
