#pragma once

#include <cstddef>
#include <cstdint>
#include <protozero/types.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// The fields of a protobuf message in the order of the file. Lengths are claims: memory follows what comes.
// Functions throw Error where the message is not well formed.
// [Protocol Buffers, "Encoding"]
class MessageReader {
 public:
  explicit MessageReader(ByteSource& bytes) : bytes_(bytes), buffer_(kBufferSize) {}

  // Goes on to the next field; false at the end. Requires that the value before it was read or skipped.
  bool next();

  std::uint32_t field() const noexcept { return field_; }
  protozero::pbf_wire_type type() const noexcept { return type_; }

  // How many bytes have been read.
  std::int64_t offset() const noexcept { return offset_; }

  // A value, or a length that one of several bytes begins with.
  std::uint64_t varint();
  std::int64_t length();

  // The next bytes of a value, behind those that are there already; a varint has as many as it takes.
  void append(std::vector<std::byte>& to, std::int64_t count);
  void append_varint(std::vector<std::byte>& to);

  void skip(std::int64_t count);
  void skip_value();

  // Names the field.
  [[noreturn]] void fail(std::string_view what) const;

 private:
  static constexpr std::size_t kBufferSize = std::size_t{1} << 16;

  // What has been read of the source, and is next: so many bytes, fewer only at the end.
  std::span<const std::byte> ahead(std::size_t count);
  void take(std::size_t count) noexcept;
  [[noreturn]] void fail_too_short(std::int64_t missing) const;

  ByteSource& bytes_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::int64_t offset_ = 0;
  std::int64_t start_ = 0;  // of the field
  std::uint32_t field_ = 0;
  protozero::pbf_wire_type type_ = protozero::pbf_wire_type::unknown;
};

}  // namespace lnorm
