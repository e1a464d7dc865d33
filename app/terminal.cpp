#include "terminal.hpp"

#include <langinfo.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string_view>

#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/os.hpp"
#include "options.hpp"

namespace lnorm::app {

namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What COLUMNS says, if it is a width [POSIX, environment variables].
std::optional<int> chosen_width() {
  const std::string_view text = environment("COLUMNS");
  int columns = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  if (error != std::errc{} || end != text.data() + text.size() || columns <= 0) return {};
  return columns;
}

bool understands_escapes(int fd) {
  return os::is_terminal(os::FileDescriptor(fd, false)) && environment("TERM") != "dumb";
}

constexpr std::chrono::milliseconds kQuiet{1000};
constexpr std::chrono::milliseconds kBetween{200};
constexpr std::string_view kClearLine = "\r\x1b[K";

}  // namespace

Style output_style(When color, int width_elsewhere) {
  std::setlocale(LC_CTYPE, "");
  Style style;
  style.color =
      color == When::always || (color == When::automatic && understands_escapes(STDOUT_FILENO) &&
                                environment("NO_COLOR").empty());
  style.utf8 = std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
  const os::FileDescriptor standard_output(STDOUT_FILENO, false);
  style.width = width_elsewhere;
  if (os::is_terminal(standard_output)) {
    const int own = os::terminal_width(standard_output).value_or(Style::kUsualWidth);
    style.width = chosen_width().value_or(own);
  }
  return style;
}

// In one write: others may write to the same place.
void print_note(std::string_view message) {
  if (std::string* const captured = CapturedOutputs::find(kStandardError)) {
    *captured += concat(captured->empty() ? "" : "\n", message);
  } else {
    std::cerr << concat("lnorm: ", message, '\n');
  }
}

std::string hint_of(const Error& error) {
  const Remedy& remedy = error.remedy();
  if (remedy.setting == Remedy::Setting::none) return error.hint();
  std::string advice;
  for (const Option& option : all_options()) {
    if (option.advice.setting == remedy.setting) advice = option.advice.text;
  }
  const std::size_t value = advice.find("{}");
  if (value != advice.npos) advice.replace(value, 2, remedy.value);
  return concat(error.hint(), error.hint().empty() ? "" : "; ", advice);
}

int print_error(std::string_view message, std::string_view hint) {
  print_note(hint.empty() ? std::string(message) : concat(message, "\nhint: ", hint));
  return 2;
}

int print_error(const Error& error) { return print_error(error.what(), hint_of(error)); }

ProgressLine::ProgressLine(When when, const TensorInfo& tensor)
    : wanted_(when == When::always ||
              (when == When::automatic && understands_escapes(STDERR_FILENO))),
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
  const int room = os::terminal_width(os::FileDescriptor(STDERR_FILENO, false)).value_or(80);
  const auto width = static_cast<std::size_t>(room);
  std::cerr << kClearLine
            << (line.size() < width  ? line
                : far.size() < width ? far
                                     : "")
            << std::flush;
  drawn_ = true;
}

}  // namespace lnorm::app
