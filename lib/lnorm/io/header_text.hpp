#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string>

#include "lnorm/io/byte_source.hpp"

namespace lnorm {

// So many bytes of a source as characters, one after another, as they come.
class HeaderText {
 public:
  HeaderText(ByteSource& bytes, std::size_t size) : bytes_(bytes), unread_(size) {}

  bool at_end() {
    if (next_ == filled_) fill();
    return next_ == filled_;
  }

  // Not at the end.
  char front() { return at_end() ? '\0' : buffer_[next_]; }
  void pop() { ++next_; }

  // How many have been popped.
  std::size_t position() const noexcept { return read_ - (filled_ - next_); }

  // Throws Error if so many come without it being called again: what a parser holds for one token has a
  // limit.
  void mark() noexcept { mark_ = position(); }

 private:
  void fill();

  ByteSource& bytes_;
  std::size_t unread_;
  std::size_t read_ = 0;
  std::size_t mark_ = 0;
  std::array<char, 1 << 16> buffer_;
  std::size_t next_ = 0;
  std::size_t filled_ = 0;
};

// An input iterator over the text for parsers that take two; without a text it is the end.
class HeaderIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  HeaderIterator() = default;
  explicit HeaderIterator(HeaderText& text) : text_(&text) {}

  char operator*() const { return text_->front(); }
  HeaderIterator& operator++() {
    text_->pop();
    return *this;
  }
  void operator++(int) { text_->pop(); }
  // Of one that may be at the end and the end.
  friend bool operator==(const HeaderIterator& a, const HeaderIterator& b) {
    return a.at_end() == b.at_end();
  }

 private:
  bool at_end() const { return text_ == nullptr || text_->at_end(); }

  HeaderText* text_ = nullptr;
};

}  // namespace lnorm
