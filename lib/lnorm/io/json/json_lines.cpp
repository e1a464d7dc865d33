#include "lnorm/io/json/json_lines.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/members.hpp"

namespace lnorm {

bool JsonLines::read_line() {
  constexpr std::size_t kMaxLine = 4'000'000'000;
  do {
    line_.clear();
    bool ended = false;  // by a newline
    while (!ended) {
      const std::string_view text = as_text(bytes_->peek_available());
      if (text.empty()) break;
      const std::size_t length = std::min(text.find('\n'), text.size());
      ended = length < text.size();
      line_ += text.substr(0, length);
      bytes_->skip(static_cast<std::int64_t>(length + (ended ? 1 : 0)));
      // What is no text says so early: a device that has no end is not read until memory is full.
      if (line_.find('\0', line_.size() - length) != std::string::npos) break;
      if (line_.size() > kMaxLine) {
        throw Error(concat(printable(bytes_->name()), ":", number_ + 1,
                           ": a line of more than 4 GB; use .npy for large tensors"));
      }
    }
    if (line_.empty() && !ended) return false;
    ++number_;
  } while (trimmed_json(line_).empty());
  return true;
}

std::unique_ptr<TensorSource> JsonLines::parse_line() {
  return parse_json(bytes_->name(), std::exchange(line_, {}), number_, dtype_);
}

std::optional<JsonLineMember> JsonLines::next(const std::optional<std::string>& member) {
  if (!read_line()) return std::nullopt;
  if (!member) return JsonLineMember{parse_line(), "", ""};
  return parse_json_line_member(bytes_->name(), std::exchange(line_, {}), number_, *member, dtype_);
}

std::unique_ptr<TensorSource> JsonLines::only(const std::optional<std::string>& line) {
  if (!line) {
    if (!read_line()) bytes_->fail("there is no line with a tensor, expected one");
    auto tensor = parse_line();
    const std::int64_t first = number_;
    if (read_line()) {
      bytes_->fail("JSON Lines of several tensors, expected one",
                   hint_to_name(bytes_->name(), std::to_string(first)));
    }
    return tensor;
  }
  std::int64_t wanted = 0;
  const auto [end, error] = std::from_chars(line->data(), line->data() + line->size(), wanted);
  if (error != std::errc{} || end != line->data() + line->size() || wanted < 1) {
    bytes_->fail(concat("JSON Lines are named by their numbers, found ':", printable(*line), "'"));
  }
  while (read_line() && number_ < wanted) {
  }
  if (number_ != wanted) bytes_->fail(concat("there is no tensor in line ", wanted));
  return parse_line();
}

}  // namespace lnorm
