#include "lnorm/io/header_text.hpp"

#include <algorithm>
#include <span>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

void HeaderText::fill() {
  constexpr std::size_t kMostToken = std::size_t{16} << 20;
  if (position() - mark_ > kMostToken) {
    throw Error(concat(printable(bytes_.name()), ": safetensors header, byte ", mark_,
                       ": what starts here goes on for more than ", kMostToken, " bytes"));
  }
  const std::size_t wanted = std::min(unread_, buffer_.size());
  filled_ = bytes_.read(std::as_writable_bytes(std::span(buffer_).first(wanted)));
  unread_ -= filled_;
  read_ += filled_;
  next_ = 0;
  if (filled_ < wanted) {
    throw Error(concat(printable(bytes_.name()), ": the safetensors header is cut off: expected ",
                       read_ + unread_, " bytes, found ", read_));
  }
}

}  // namespace lnorm
