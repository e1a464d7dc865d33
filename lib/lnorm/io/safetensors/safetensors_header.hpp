#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lnorm/core/shape.hpp"
#include "lnorm/io/byte_source.hpp"
#include "lnorm/io/safetensors/safetensors_parser.hpp"

namespace lnorm {

// The tensors of a file in the order of their elements, which follow one another without gaps.
class SafetensorsHeader {
 public:
  // Reads what stands before the elements. Throws Error if it is not well formed, or not that of a source
  // of so many bytes, where that is known.
  explicit SafetensorsHeader(ByteSource& bytes);

  std::size_t size() const noexcept { return entries_.tensors.size(); }
  std::string_view name(std::size_t index) const { return at(index).name.in(entries_.names); }
  const SafetensorsDType& dtype(std::size_t index) const { return *at(index).dtype; }
  Shape shape(std::size_t index) const;

  // Where the elements of a tensor begin and end, counted from behind the header.
  std::int64_t begin(std::size_t index) const { return at(index).begin; }
  std::int64_t end(std::size_t index) const { return at(index).end; }

  // The bytes of all elements.
  std::int64_t data_bytes() const { return size() == 0 ? 0 : end(size() - 1); }

 private:
  const SafetensorsEntry& at(std::size_t index) const { return entries_.tensors[index]; }
  void check_offsets(const std::string& file) const;

  SafetensorsEntries entries_;
};

}  // namespace lnorm
