#include "lnorm/io/onnx/message_reader.hpp"

#include <algorithm>
#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kMaxBytes = 0x7fffffff;  // of a message, by protobuf's own rule

}  // namespace

bool MessageReader::next() {
  start_ = offset_;
  field_ = 0;
  if (ahead(1).empty()) return false;
  if (offset_ > kMaxBytes) {
    fail(concat("the message goes on after ", kMaxBytes, " bytes, which is the most there may be"));
  }
  constexpr std::uint64_t kMaxField = (1u << 29) - 1;
  const std::uint64_t key = varint();
  const std::uint64_t field = key >> 3;
  if (field == 0 || field > kMaxField) {
    fail(concat("found a field of number ", field, ", expected 1 to ", kMaxField));
  }
  field_ = static_cast<std::uint32_t>(field);
  type_ = static_cast<protozero::pbf_wire_type>(key & 7);
  return true;
}

std::uint64_t MessageReader::varint() {
  const auto bytes = ahead(protozero::max_varint_length);
  const char* const begin = reinterpret_cast<const char*>(bytes.data());
  const char* end = begin;
  try {
    const std::uint64_t value = protozero::decode_varint(&end, begin + bytes.size());
    take(static_cast<std::size_t>(end - begin));
    return value;
  } catch (const protozero::varint_too_long_exception&) {
    fail("found a varint of more than 10 bytes");
  } catch (const protozero::end_of_buffer_exception&) {
    fail("the message is cut off in a varint");
  }
}

std::int64_t MessageReader::length() {
  const std::uint64_t length = varint();
  if (length > kMaxBytes) {
    fail(concat("found a length of ", length, ", expected at most ", kMaxBytes));
  }
  const auto claimed = static_cast<std::int64_t>(length);
  const auto unread = bytes_.remaining();
  if (unread) {
    const std::int64_t rest = *unread + static_cast<std::int64_t>(end_ - begin_);
    if (claimed > rest) fail_too_short(claimed - rest);
  }
  return claimed;
}

void MessageReader::append(std::vector<std::byte>& to, std::int64_t count) {
  while (count > 0) {
    const auto bytes = ahead(1);
    if (bytes.empty()) fail_too_short(count);
    const auto part = bytes.first(std::min(bytes.size(), static_cast<std::size_t>(count)));
    to.insert(to.end(), part.begin(), part.end());
    take(part.size());
    count -= std::ssize(part);
  }
}

void MessageReader::append_varint(std::vector<std::byte>& to) {
  const auto bytes = ahead(protozero::max_varint_length);  // which stay while one is taken
  const std::int64_t start = offset_;
  varint();
  to.insert(to.end(), bytes.begin(), bytes.begin() + (offset_ - start));
}

void MessageReader::skip(std::int64_t count) {
  const std::int64_t buffered = std::min(count, static_cast<std::int64_t>(end_ - begin_));
  take(static_cast<std::size_t>(buffered));
  const std::int64_t skipped = bytes_.skip(count - buffered);
  offset_ += skipped;
  if (buffered + skipped < count) fail_too_short(count - buffered - skipped);
}

void MessageReader::skip_value() {
  using Type = protozero::pbf_wire_type;
  switch (type_) {
    case Type::varint:
      varint();
      break;
    case Type::fixed64:
      skip(8);
      break;
    case Type::length_delimited:
      skip(length());
      break;
    case Type::fixed32:
      skip(4);
      break;
    default:
      fail(concat("found wire type ", static_cast<int>(type_), ", expected 0, 1, 2 or 5"));
  }
}

void MessageReader::fail(std::string_view what) const {
  const std::string field = field_ == 0 ? "" : concat("field ", field_, ": ");
  throw Error(
      concat(printable(bytes_.name()), ": ONNX TensorProto, byte ", start_, ": ", field, what));
}

void MessageReader::fail_too_short(std::int64_t missing) const {
  fail(concat("the message is cut off: ", counted(missing, "byte"), " more expected"));
}

std::span<const std::byte> MessageReader::ahead(std::size_t count) {
  if (end_ - begin_ < count) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
    end_ += bytes_.read(std::span(buffer_).subspan(end_));
  }
  return std::span(buffer_).subspan(begin_, end_ - begin_);
}

void MessageReader::take(std::size_t count) noexcept {
  begin_ += count;
  offset_ += static_cast<std::int64_t>(count);
}

}  // namespace lnorm
