#include "lnorm/io/safetensors/safetensors_header.hpp"

#include <span>
#include <tuple>

#include "lnorm/core/byte_order.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

// The reference implementation has the same limit.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

std::size_t read_header_length(ByteSource& bytes) {
  std::array<char, 8> start{};
  const std::size_t got = bytes.read(std::as_writable_bytes(std::span(start)));
  if (got < start.size()) {
    bytes.fail(
        concat("is cut off in the length of the safetensors header: the file ends at byte ", got));
  }
  const std::uint64_t length = from_little_endian({start.data(), start.size()});
  if (length > kMaxHeaderBytes) {
    bytes.fail(
        concat("a safetensors header of ", length, " bytes, expected at most ", kMaxHeaderBytes));
  }
  const auto remaining = bytes.remaining();
  if (remaining && static_cast<std::uint64_t>(*remaining) < length) {
    bytes.fail(concat("the safetensors header is cut off: expected ", length, " bytes, found ",
                      *remaining));
  }
  return static_cast<std::size_t>(length);
}

// They must tile the data, in order.
void check_offsets(const SafetensorsHeader& header, const ByteSource& bytes) {
  std::int64_t expected = 0;
  for (const SafetensorsEntry& tensor : header.tensors) {
    if (tensor.begin != expected) {
      bytes.fail(concat("tensor '", printable(header.name(tensor)), "': data_offsets begin at ",
                        tensor.begin, ", expected ", expected, ": ",
                        tensor.begin < expected ? "tensors overlap" : "there is a hole before it"));
    }
    expected = tensor.end;
  }
}

}  // namespace

SafetensorsHeader read_safetensors_header(ByteSource& bytes) {
  SafetensorsHeader header = parse_safetensors_header(bytes, read_header_length(bytes));
  const auto key = [&](const SafetensorsEntry& tensor) {
    return std::tuple(tensor.begin, tensor.end, header.name(tensor));
  };
  const auto is_before = [&](const auto& a, const auto& b) { return key(a) < key(b); };
  if (!std::is_sorted(header.tensors.begin(), header.tensors.end(), is_before)) {
    std::sort(header.tensors.begin(), header.tensors.end(), is_before);
  }
  check_offsets(header, bytes);
  const auto remaining = bytes.remaining();
  if (remaining && *remaining != header.data_bytes()) {
    bytes.fail(concat(*remaining < header.data_bytes() ? "the data is cut off" : "the data goes on",
                      ": the tensors of the safetensors header take ",
                      counted(header.data_bytes(), "byte"), ", found ", *remaining));
  }
  return header;
}

}  // namespace lnorm
