#include "lnorm/io/os.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::os {

namespace {

[[noreturn]] void fail(const std::string& name, int error) {
  throw SystemError(concat(name.empty() ? "''" : printable(name), ": ", std::strerror(error)));
}

template <class Call>
auto retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

// Somebody who shares a pipe may have made it not to block: waits for it.
template <class Call>
auto retry_ready(int fd, short event, Call call) {
  for (;;) {
    const auto result = retry(call);
    if (result >= 0 || errno != EAGAIN) return result;
    struct pollfd ready {
      .fd = fd, .events = event, .revents = 0
    };
    retry([&] { return ::poll(&ready, 1, -1); });
  }
}

FileDescriptor open(const std::string& path, int access) {
  const int fd = retry([&] { return ::open(path.c_str(), access | O_CLOEXEC); });
  if (fd < 0) fail(path, errno);
  return {fd, true};
}

// The permissions a new file gets.
mode_t default_mode() noexcept {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// Creates a file whose name begins with path and goes on with six letters, which path then has, too.
int make_unique(std::string& path) {
  const std::string pattern = path + "XXXXXX";
  return retry([&] {
    path = pattern;  // of which a call that failed has left nothing
    return ::mkostemp(path.data(), O_CLOEXEC);
  });
}

// A temporary file or folder that is there, for remove_temporaries(): in memory of its own, since a signal
// handler must not come upon memory that is being freed.
struct Temporary {
  std::atomic<bool> there = false;
  bool is_folder = false;
  char name[PATH_MAX];
};
using Temporaries = std::array<Temporary, kMaxTemporaries>;
Temporaries own_temporaries;
std::span<Temporary> temporaries = own_temporaries;
static_assert(std::atomic<bool>::is_always_lock_free);

void remember(const std::string& path, bool is_folder) {
  for (Temporary& temporary : temporaries) {
    if (temporary.there || path.size() >= sizeof temporary.name) continue;
    path.copy(temporary.name, path.size());
    temporary.name[path.size()] = '\0';
    temporary.is_folder = is_folder;
    temporary.there = true;
    return;
  }
}

void forget(const std::string& path) noexcept {
  for (Temporary& temporary : temporaries) {
    if (temporary.there && path == temporary.name) temporary.there = false;
  }
}

// Async-signal-safe.
void remove_with_files(const char* folder) noexcept {
  char path[PATH_MAX + 16];
  const std::size_t length = std::strlen(folder);
  if (length >= PATH_MAX) return;
  std::memcpy(path, folder, length);
  path[length] = '/';
  char* const number = path + length + 1;
  for (unsigned i = 0;; ++i) {
    *std::to_chars(number, path + sizeof path - 1, i).ptr = '\0';
    if (::unlink(path) != 0) break;
  }
  ::rmdir(folder);
}

// No signal is handled while an object of this class lives: nothing comes between making a file and
// remembering it.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (owned_ && fd_ >= 0) ::close(fd_);
}

void FileDescriptor::close(const std::string& name) {
  const int fd = std::exchange(fd_, -1);
  // Not retried: after EINTR Linux has closed the descriptor, and its number may be another's.
  if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) fail(name, errno);
}

void hold_standard_streams() noexcept {
  // The lowest free number is given, so that each closed stream gets its own.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    const int taken = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    static_cast<void>(taken);
  }
}

FileDescriptor open_for_reading(const std::string& path) { return open(path, O_RDONLY); }

FileDescriptor open_in_place(const std::string& path) { return open(path, O_WRONLY); }

std::optional<int> inherited_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view digits = path.substr(folder.size());
    int number = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc{} && end == digits.data() + digits.size() && number >= 0) return number;
  }
  return std::nullopt;
}

FileDescriptor create_temporary(const std::string& path, const struct stat* replaced,
                                std::string& temporary_path) {
  struct stat ignored;
  if (::lstat(path.c_str(), &ignored) != 0 && errno == ENAMETOOLONG) fail(path, errno);
  const std::size_t name_start = path.rfind('/') + 1;  // npos + 1 is 0
  // A short name of its own: the file's name may be as long as the file system allows.
  temporary_path = path.substr(0, name_start) + ".lnorm-";
  const SignalsHeld held;
  const FileDescriptor created(make_unique(temporary_path), true);
  if (created.get() < 0) fail(path, errno);
  remember(temporary_path, false);
  // For writing alone, as the other hosts open it that write parts of it: of a page that an NFS client may read it writes
  // back what it has read as well.
  const int fd = retry([&] { return ::open(temporary_path.c_str(), O_WRONLY | O_CLOEXEC); });
  FileDescriptor result(fd, true);
  // Only root can give a file away; for all others the owner stays theirs.
  const bool owned =
      fd >= 0 && replaced != nullptr && ::fchown(fd, replaced->st_uid, replaced->st_gid) == 0;
  static_cast<void>(owned);
  if (fd < 0 ||
      ::fchmod(fd, replaced != nullptr ? replaced->st_mode & 0777 : default_mode()) != 0) {
    const int error = errno;
    remove_quietly(temporary_path);
    fail(path, error);
  }
  return result;
}

FileDescriptor join_temporary(const std::string& path, const std::string& name) {
  const SignalsHeld held;
  const int fd = retry([&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC); });
  if (fd < 0) fail(name, errno);
  remember(path, false);
  return {fd, true};
}

void leave_temporary(const std::string& path) noexcept { forget(path); }

std::string create_temporary_folder(const std::string& parent, const std::string& name) {
  std::string path = parent + "/.lnorm-XXXXXX";
  const SignalsHeld held;
  if (::mkdtemp(path.data()) == nullptr) fail(name, errno);
  remember(path, true);
  return path;
}

FileDescriptor create_nameless(std::string& name) {
  const char* const asked = std::getenv("TMPDIR");
  const std::string folder = asked != nullptr && *asked != '\0' ? asked : "/tmp";
  name = concat("a temporary file in ", folder);
  // Where the file system can, without a name from the start: a signal to another thread finds none.
  const int nameless =
      retry([&] { return ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); });
  if (nameless >= 0) return {nameless, true};
  if (errno != EOPNOTSUPP && errno != EISDIR) fail(name, errno);
  std::string path = folder + "/lnorm-";
  const SignalsHeld held;
  const int fd = make_unique(path);
  if (fd < 0) fail(name, errno);
  FileDescriptor result(fd, true);
  if (::unlink(path.c_str()) != 0) fail(name, errno);
  return result;
}

void check_writable(const std::string& path) {
  if (::access(path.c_str(), W_OK) != 0) fail(path, errno);
}

void rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) fail(to, errno);
  forget(from);
}

void remove_quietly(const std::string& path) noexcept {
  ::unlink(path.c_str());
  forget(path);
}

void remove_folder_quietly(const std::string& path) noexcept {
  remove_with_files(path.c_str());
  forget(path);
}

bool make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  const int error = errno;
  const auto found = status(path);
  if (error != EEXIST || !found || !S_ISDIR(found->st_mode)) fail(path, error);
  return false;
}

void take_over(const std::string& path, const struct stat& from) {
  // Only root can give a file away; for all others the owner stays theirs.
  const bool owned = ::chown(path.c_str(), from.st_uid, from.st_gid) == 0;
  static_cast<void>(owned);
  if (::chmod(path.c_str(), from.st_mode & 0777) != 0) fail(path, errno);
}

void remove_temporaries() noexcept {
  for (const Temporary& temporary : temporaries) {
    if (temporary.there && !temporary.is_folder) ::unlink(temporary.name);
  }
  // The files before may have been in folders.
  for (const Temporary& temporary : temporaries) {
    if (temporary.there && temporary.is_folder) remove_with_files(temporary.name);
  }
}

namespace {

// The process that waits. It holds nothing that others wait for.
[[noreturn]] void remove_temporaries_after(int end_of_other) noexcept {
  ::setsid();
  for (const int signal : kEndingSignals) ::signal(signal, SIG_IGN);
  ::dup2(end_of_other, 0);
  ::close_range(1, ~0U, 0);
  char byte;
  retry([&] { return ::read(0, &byte, 1); });
  remove_temporaries();
  ::_exit(0);
}

}  // namespace

void guard_temporaries() noexcept {
  void* const shared = ::mmap(nullptr, sizeof(Temporaries), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int ends[2];
  if (shared == MAP_FAILED || ::pipe2(ends, O_CLOEXEC) != 0) return;
  temporaries = *new (shared) Temporaries;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    remove_temporaries_after(ends[0]);
  }
  ::close(ends[0]);  // the other one stays open until we end
}

struct stat status(const FileDescriptor& fd, const std::string& name) {
  struct stat result;
  if (::fstat(fd.get(), &result) != 0) fail(name, errno);
  return result;
}

std::optional<struct stat> status(const std::string& path) {
  struct stat result;
  if (::stat(path.c_str(), &result) == 0) return result;
  if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return std::nullopt;
  fail(path, errno);
}

std::int64_t offset_of(const FileDescriptor& fd) noexcept {
  const off_t offset = ::lseek(fd.get(), 0, SEEK_CUR);
  return offset < 0 ? 0 : offset;
}

namespace {
bool hides_terminals = false;
}

bool is_terminal(const FileDescriptor& fd) noexcept {
  return !hides_terminals && ::isatty(fd.get()) == 1;
}

void hide_terminals() noexcept { hides_terminals = true; }

std::optional<int> terminal_width(const FileDescriptor& fd) noexcept {
  struct winsize size;
  if (hides_terminals || ::ioctl(fd.get(), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return std::nullopt;
  return size.ws_col;
}

void widen_pipe(const FileDescriptor& fd) noexcept {
  constexpr int kBytes = 1 << 20;  // what Linux grants everybody
  ::fcntl(fd.get(), F_SETPIPE_SZ, kBytes);
}

void prefer_large_pages([[maybe_unused]] std::span<std::byte> memory) noexcept {
#ifdef MADV_HUGEPAGE
  // It takes whole pages, and goes on with small ones where there are no large ones.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(memory.data()) % page;
  if (memory.size() < before + page) return;
  memory = memory.subspan(before);
  madvise(memory.data(), memory.size() / page * page, MADV_HUGEPAGE);
#endif
}

std::size_t read_some(const FileDescriptor& fd, std::span<std::byte> to, const std::string& name) {
  const ssize_t count =
      retry_ready(fd.get(), POLLIN, [&] { return ::read(fd.get(), to.data(), to.size()); });
  if (count < 0) fail(name, errno);
  return static_cast<std::size_t>(count);
}

std::size_t read_at(const FileDescriptor& fd, std::span<std::byte> to, std::int64_t offset,
                    const std::string& name) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t count = retry([&] {
      return ::pread(fd.get(), to.data() + done, to.size() - done,
                     offset + static_cast<std::int64_t>(done));
    });
    if (count < 0) fail(name, errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

void write_at(const FileDescriptor& fd, std::span<const std::byte> from, std::int64_t offset,
              const std::string& name) {
  while (!from.empty()) {
    const ssize_t count =
        retry([&] { return ::pwrite(fd.get(), from.data(), from.size(), offset); });
    if (count < 0) fail(name, errno);
    from = from.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

void truncate(const FileDescriptor& fd, std::int64_t bytes, const std::string& name) {
  if (retry([&] { return ::ftruncate(fd.get(), bytes); }) != 0) fail(name, errno);
}

void write_all(const FileDescriptor& fd, std::span<const std::byte> from, const std::string& name) {
  while (!from.empty()) {
    const ssize_t count =
        retry_ready(fd.get(), POLLOUT, [&] { return ::write(fd.get(), from.data(), from.size()); });
    if (count < 0) {
      if (errno == EPIPE) throw ClosedPipe();
      fail(name, errno);
    }
    from = from.subspan(static_cast<std::size_t>(count));
  }
}

}  // namespace lnorm::os
