#include "progress_line.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string_view>

#include "lnorm/core/text.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

constexpr std::chrono::milliseconds kQuiet{1000};
constexpr std::chrono::milliseconds kBetween{200};
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(When when, const TensorInfo& tensor)
    : wanted_(when == When::always || (when == When::automatic && can_redraw_standard_error())),
      name_(printable(tensor.name)),
      total_(std::max<std::int64_t>(1, element_count(tensor.shape))),
      next_(begin_ + kQuiet) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::clear() {
  if (drawn_) std::cerr << kClearLine << std::flush;
  drawn_ = false;
}

Progress ProgressLine::callback() {
  if (!wanted_) return {};
  return [this](std::int64_t elements) { show(elements); };
}

void ProgressLine::show(std::int64_t elements) {
  if (elements >= total_) return clear();
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kBetween;
  const double share = static_cast<double>(elements) / static_cast<double>(total_);
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const std::string far =
      concat(static_cast<int>(100 * share), "%, ", std::ceil(seconds / share - seconds), " s left");
  // A line that wraps could not be taken back.
  const std::string line = concat(name_, ": ", far);
  const std::size_t buffer = standard_error_width();
  std::cerr << kClearLine
            << (line.size() < buffer  ? line
                : far.size() < buffer ? far
                                      : "")
            << std::flush;
  drawn_ = true;
}

}  // namespace lnorm::app
