#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/safetensors/safetensors_dtype.hpp"

namespace lnorm {

// What a header may hold at most, so that the worst of them costs less than 256 MiB.
inline constexpr std::size_t kMostSafetensors = 1'000'000;
inline constexpr std::size_t kMostSafetensorsExtents = 4'000'000;  // of all shapes
inline constexpr std::size_t kMostSafetensorsMetadata = 1'000'000;
inline constexpr std::size_t kMostSafetensorsNameBytes = std::size_t{48} << 20;  // of all names

// A name in a text of many.
struct NameSpan {
  std::uint32_t at = 0;
  std::uint32_t size = 0;

  std::string_view in(std::string_view names) const { return names.substr(at, size); }
};

struct SafetensorsEntry {
  std::int64_t begin = 0;  // of its elements, behind the header
  std::int64_t end = 0;
  const SafetensorsDType* dtype = nullptr;
  NameSpan name;
  std::uint32_t extents_at = 0;
  std::uint32_t rank = 0;
};

// The tensors that a header names. There may be a million: names and extents lie one behind another.
struct SafetensorsEntries {
  std::string names;
  std::vector<std::int64_t> extents;
  std::vector<SafetensorsEntry> tensors;
};

// Reads a header of so many bytes. Throws Error unless it is JSON of exactly the form that the format
// has: every name once, and for every tensor offsets that are as far apart as its shape and dtype ask.
SafetensorsEntries parse_safetensors_header(ByteSource& bytes, std::size_t size);

}  // namespace lnorm
