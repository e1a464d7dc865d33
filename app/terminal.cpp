#include "terminal.hpp"

#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <string_view>

#include "lnorm/io/os.hpp"

namespace lnorm::app {

namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool understands_escapes(int fd) {
  return os::is_terminal(os::FileDescriptor(fd, false)) && environment("TERM") != "dumb";
}

}  // namespace

Style output_style(When color) {
  std::setlocale(LC_CTYPE, "");
  Style style;
  style.color =
      color == When::always || (color == When::automatic && understands_escapes(STDOUT_FILENO) &&
                                environment("NO_COLOR").empty());
  style.utf8 = std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
  style.width = os::terminal_width(os::FileDescriptor(STDOUT_FILENO, false)).value_or(style.width);
  return style;
}

std::size_t standard_error_width() {
  const os::FileDescriptor standard_error(STDERR_FILENO, false);
  return static_cast<std::size_t>(os::terminal_width(standard_error).value_or(80));
}

bool can_redraw_standard_error() { return understands_escapes(STDERR_FILENO); }

}  // namespace lnorm::app
