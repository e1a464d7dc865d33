#pragma once

#include <algorithm>
#include <array>
#include <streambuf>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// So many bytes of a source as a stream of characters, as they come.
class HeaderText final : public std::streambuf {
 public:
  HeaderText(ByteSource& bytes, std::size_t size) : bytes_(bytes), unread_(size) {}

  // How many have been taken.
  std::size_t offset() const noexcept { return read_ - static_cast<std::size_t>(egptr() - gptr()); }

  // Throws Error if so many come without it being called again: what a parser holds for one token has a
  // limit.
  void mark() noexcept { mark_ = offset(); }

 protected:
  int_type underflow() override {
    constexpr std::size_t kMaxToken = std::size_t{16} << 20;
    if (offset() - mark_ > kMaxToken) {
      throw Error(concat(printable(bytes_.name()), ": safetensors header, byte ", mark_,
                         ": what starts here goes on for more than ", kMaxToken, " bytes"));
    }
    const auto wanted = std::span(buffer_).first(std::min(unread_, buffer_.size()));
    const std::size_t got = bytes_.read(std::as_writable_bytes(wanted));
    unread_ -= got;
    read_ += got;
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
    if (got < wanted.size()) {
      throw Error(concat(printable(bytes_.name()), ": the safetensors header is cut off: expected ",
                         read_ + unread_, " bytes, found ", read_));
    }
    return got == 0 ? traits_type::eof() : traits_type::to_int_type(buffer_[0]);
  }

 private:
  ByteSource& bytes_;
  std::size_t unread_;
  std::size_t read_ = 0;
  std::size_t mark_ = 0;
  std::array<char, 1 << 16> buffer_;
};

}  // namespace lnorm
