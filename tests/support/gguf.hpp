#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// GGUF files written by hand, well formed or not.
namespace support {

// The low byte comes first.
template <class Number>
std::string gguf_number(Number number) {
  auto rest = static_cast<std::uint64_t>(number);
  std::string bytes;
  for (std::size_t i = 0; i < sizeof number; ++i, rest >>= 8) bytes += static_cast<char>(rest);
  return bytes;
}
inline std::string u32(std::uint32_t number) { return gguf_number(number); }
inline std::string u64(std::uint64_t number) { return gguf_number(number); }

inline std::string gguf_text(std::string_view text) { return u64(text.size()) + std::string(text); }

// A key, and the type and bytes of its value.
inline std::string gguf_pair(std::string_view key, std::uint32_t type, const std::string& value) {
  return gguf_text(key) + u32(type) + value;
}

// sizes: the fastest axis first. type: ggml's number.
inline std::string gguf_tensor(std::string_view name, const std::vector<std::uint64_t>& sizes,
                               std::uint32_t type, std::uint64_t offset) {
  std::string bytes = gguf_text(name) + u32(static_cast<std::uint32_t>(sizes.size()));
  for (const std::uint64_t size : sizes) bytes += u64(size);
  return bytes + u32(type) + u64(offset);
}

// The header, zeros up to a multiple of the alignment, the data.
inline std::string gguf(const std::vector<std::string>& pairs,
                        const std::vector<std::string>& tensors, const std::string& data,
                        std::size_t alignment = 32) {
  std::string bytes = "GGUF" + u32(3) + u64(tensors.size()) + u64(pairs.size());
  for (const std::string& pair : pairs) bytes += pair;
  for (const std::string& tensor : tensors) bytes += tensor;
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  return bytes + data;
}

}  // namespace support
