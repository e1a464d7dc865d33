#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace support {

namespace {

// Tests write to programs that may leave early: that must not end the test.
[[maybe_unused]] const auto former_handler = std::signal(SIGPIPE, SIG_IGN);

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

int checked(int result, const std::string& what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

struct Ends {
  Descriptor ours;
  Descriptor theirs;  // none: closed
};

Ends open_terminal(int columns) {
  Ends ends{Descriptor(checked(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), "posix_openpt")), {}};
  checked(::grantpt(ends.ours.get()), "grantpt");
  checked(::unlockpt(ends.ours.get()), "unlockpt");
  const char* const name = ::ptsname(ends.ours.get());
  ends.theirs = Descriptor(checked(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC), name));
  termios settings{};
  checked(::tcgetattr(ends.theirs.get(), &settings), "tcgetattr");
  ::cfmakeraw(&settings);  // the bytes as they are written
  checked(::tcsetattr(ends.theirs.get(), TCSANOW, &settings), "tcsetattr");
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  checked(::ioctl(ends.theirs.get(), TIOCSWINSZ, &size), "TIOCSWINSZ");
  return ends;
}

Ends open_stream(const Stream& stream, bool to_program) {
  switch (stream.kind) {
    case Stream::Kind::closed:
      return {};
    case Stream::Kind::terminal:
      return open_terminal(stream.columns);
    case Stream::Kind::file: {
      const int flags = to_program ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
      const char* const path = stream.text.c_str();
      return {Descriptor(), Descriptor(checked(::open(path, flags | O_CLOEXEC, 0666), path))};
    }
    case Stream::Kind::pipe:
      break;
  }
  std::array<int, 2> fds{};
  checked(::pipe2(fds.data(), O_CLOEXEC), "pipe2");
  Ends ends{Descriptor(fds[to_program ? 1 : 0]), Descriptor(fds[to_program ? 0 : 1])};
  if (to_program) checked(::fcntl(ends.ours.get(), F_SETFL, O_NONBLOCK), "fcntl");
  return ends;
}

// The environment of a command: ours, in which its own variables replace those of the same name, and later ones earlier ones.
std::vector<std::string> environment_of(const Command& command) {
  std::map<std::string, std::string> values;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      values[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : command.environment) values[name] = value;
  std::vector<std::string> variables;
  for (const auto& [name, value] : values) variables.push_back(name + "=" + value);
  return variables;
}

std::vector<char*> null_terminated(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// By posix_spawn: fork copies the page tables of the test, which takes longer than most runs.
pid_t start(const Command& command, const std::array<int, 3>& fds) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int to = 0; to < 3; ++to) {
    const int from = fds[static_cast<std::size_t>(to)];
    if (from < 0) {
      ::posix_spawn_file_actions_addclose(&actions, to);
    } else {
      ::posix_spawn_file_actions_adddup2(&actions, from, to);
    }
  }
  ::posix_spawn_file_actions_addchdir_np(&actions, command.directory.c_str());
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t to_default;
  ::sigemptyset(&to_default);
  ::sigaddset(&to_default, SIGPIPE);  // as a shell starts it
  ::posix_spawnattr_setsigdefault(&attributes, &to_default);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> arguments{command.program};
  arguments.insert(arguments.end(), command.arguments.begin(), command.arguments.end());
  std::vector<std::string> environment = environment_of(command);
  pid_t child = -1;
  const int error =
      ::posix_spawn(&child, command.program.c_str(), &actions, &attributes,
                    null_terminated(arguments).data(), null_terminated(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::generic_category(), command.program);
  return child;
}

// Reads what is there; closes at the end, or where the reader is to leave.
void take(Descriptor& from, std::string& to, std::optional<std::size_t> limit) {
  std::array<char, 65536> buffer;
  const std::size_t room = limit ? std::min(*limit - to.size(), buffer.size()) : buffer.size();
  const ssize_t got = ::read(from.get(), buffer.data(), room);
  if (got > 0) to.append(buffer.data(), static_cast<std::size_t>(got));
  // A terminal whose other end is closed answers EIO.
  if (got == 0 || (got < 0 && errno != EINTR) || to.size() == limit) from.reset();
}

void give(Descriptor& to, std::string_view& bytes) {
  const ssize_t put = ::write(to.get(), bytes.data(), bytes.size());
  if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
  if (bytes.empty() || (put < 0 && errno != EINTR && errno != EAGAIN)) to.reset();
}

}  // namespace

Stream::Stream() = default;

Stream::Stream(Kind kind_of_stream, std::string text_or_path,
               std::optional<std::size_t> limit_of_pipe, int columns_of_terminal)
    : kind(kind_of_stream),
      text(std::move(text_or_path)),
      limit(limit_of_pipe),
      columns(columns_of_terminal) {}

Command Command::to(Stream other) const {
  Command result = *this;
  result.out = std::move(other);
  return result;
}

Outcome run(const Command& command) {
  Ends in = open_stream(command.in, true);
  Ends out = open_stream(command.out, false);
  Ends err = open_stream(command.err, false);
  const pid_t child = start(command, {in.theirs.get(), out.theirs.get(), err.theirs.get()});
  for (Ends* ends : {&in, &out, &err}) ends->theirs.reset();

  Outcome outcome;
  std::string_view rest;
  if (command.in.kind == Stream::Kind::pipe) {
    rest = command.in.text;
    if (rest.empty()) in.ours.reset();
  }
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::milliseconds(static_cast<long>(command.seconds * 1000));
  bool late = false;
  while (out.ours.is_open() || err.ours.is_open()) {
    // Closed ones are -1, which poll passes over; a terminal that is only read from stays silent.
    std::array<pollfd, 3> fds{pollfd{rest.empty() ? -1 : in.ours.get(), POLLOUT, 0},
                              pollfd{out.ours.get(), POLLIN, 0}, pollfd{err.ours.get(), POLLIN, 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    late = left.count() <= 0;
    if (late) break;
    if (::poll(fds.data(), fds.size(), static_cast<int>(left.count())) < 0) continue;
    if (fds[0].revents != 0) give(in.ours, rest);
    if (fds[1].revents != 0) take(out.ours, outcome.out, command.out.limit);
    if (fds[2].revents != 0) take(err.ours, outcome.err, command.err.limit);
  }
  if (late) ::kill(child, SIGKILL);
  int status = 0;
  rusage usage{};
  while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) continue;
  if (late) throw std::runtime_error("the program did not end in time");
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  outcome.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  outcome.peak_kib = usage.ru_maxrss;
  return outcome;
}

Outcome run(std::vector<std::string> arguments, Stream in) {
  return run({.arguments = std::move(arguments), .in = std::move(in)});
}

std::string output_of(const Command& command) {
  Outcome outcome = run(command);
  if (outcome.status == 0 && outcome.err.empty()) return std::move(outcome.out);
  throw std::runtime_error((command.arguments.empty() ? "" : command.arguments.back() + ": ") +
                           "exit status " + std::to_string(outcome.status) +
                           ", standard error: " + outcome.err);
}

std::string output_of(std::vector<std::string> arguments, Stream in) {
  return output_of({.arguments = std::move(arguments), .in = std::move(in)});
}

std::string refusal_fault(const Outcome& outcome, const std::vector<std::string>& words) {
  const std::string& err = outcome.err;
  const auto fault = [&](const std::string& what) { return what + "; standard error: " + err; };
  if (outcome.status != 2) return fault("exit status " + std::to_string(outcome.status));
  if (!outcome.out.empty()) return fault("found " + outcome.out + " on standard output");
  if (!err.starts_with("lnorm: ") || !err.ends_with('\n')) return fault("not 'lnorm: ' and a line");
  const std::string_view second = std::string_view(err).substr(err.find('\n') + 1);
  if (!second.empty() &&
      (!second.starts_with("hint: ") || second.find('\n') + 1 != second.size())) {
    return fault("the second line is not one hint");
  }
  const auto is_control = [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7f; };
  if (std::any_of(err.begin(), err.end(), is_control)) return fault("found a control character");
  try {
    (void)nlohmann::json(err).dump();
  } catch (const nlohmann::json::exception&) {
    return "standard error is not valid UTF-8";
  }
  for (const std::string& word : words) {
    if (err.find(word) == std::string::npos) return fault("'" + word + "' is missing");
  }
  return {};
}

}  // namespace support
