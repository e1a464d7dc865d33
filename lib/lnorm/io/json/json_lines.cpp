#include "lnorm/io/json/json_lines.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_tensor.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/members.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 16;
constexpr std::size_t kMostLine = 4'000'000'000;

}  // namespace

JsonLines::JsonLines(std::unique_ptr<ByteSource> bytes) : bytes_(std::move(bytes)) {}

bool JsonLines::read_line() {
  do {
    line_.clear();
    for (;;) {
      if (ahead_start_ == ahead_.size()) {
        ahead_.resize(kBuffer);
        ahead_.resize(bytes_->read_available(std::as_writable_bytes(std::span(ahead_))));
        ahead_start_ = 0;
        if (ahead_.empty()) break;
      }
      const char* const start = ahead_.data() + ahead_start_;
      const std::size_t left = ahead_.size() - ahead_start_;
      const void* const end = std::memchr(start, '\n', left);
      const std::size_t length =
          end == nullptr ? left : static_cast<std::size_t>(static_cast<const char*>(end) - start);
      line_.append(start, length);
      ahead_start_ += length + (end == nullptr ? 0 : 1);
      if (end != nullptr) break;
      // What is no text says so early: a device that has no end is not read until memory is full.
      if (std::memchr(start, '\0', length) != nullptr) break;
      if (line_.size() > kMostLine) {
        throw Error(concat(printable(bytes_->name()), ":", number_ + 1,
                           ": a line of more than 4 GB; use .npy for large tensors"));
      }
    }
    if (line_.empty() && ahead_.empty()) return false;
    ++number_;
  } while (trimmed_json(line_).empty());
  return true;
}

std::unique_ptr<TensorSource> JsonLines::next() {
  if (!read_line()) return nullptr;
  return parse_json_line(bytes_->name(), std::exchange(line_, {}), number_);
}

std::unique_ptr<TensorSource> JsonLines::only(const std::optional<std::string>& line) {
  const auto fail = [&](const std::string& what, const std::string& hint = "") {
    throw Error(concat(printable(bytes_->name()), ": ", what), hint);
  };
  if (!line) {
    auto tensor = next();
    if (!tensor) fail("there is no line with a tensor, expected one");
    const std::int64_t first = number_;
    if (read_line()) {
      fail("JSON Lines of several tensors, expected one",
           hint_to_name(bytes_->name(), std::to_string(first)));
    }
    return tensor;
  }
  std::int64_t wanted = 0;
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), wanted);
  if (error != std::errc{} || end != line->data() + line->size() || wanted < 1) {
    fail(concat("JSON Lines are named by their numbers, found ':", printable(*line), "'"));
  }
  while (read_line() && number_ < wanted) {
  }
  if (number_ != wanted) fail(concat("there is no tensor in line ", wanted));
  return parse_json_line(bytes_->name(), std::exchange(line_, {}), number_);
}

}  // namespace lnorm
