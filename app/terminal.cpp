#include "terminal.hpp"

#include <langinfo.h>
#include <unistd.h>

#include <charconv>
#include <clocale>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "lnorm/io/os.hpp"

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

std::size_t standard_error_width() {
  const os::FileDescriptor standard_error(STDERR_FILENO, false);
  return static_cast<std::size_t>(os::terminal_width(standard_error).value_or(80));
}

bool can_redraw_standard_error() { return understands_escapes(STDERR_FILENO); }

}  // namespace lnorm::app
