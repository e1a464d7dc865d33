// The system calls of a program, failing as planned: a library to be preloaded (LD_PRELOAD) into the real
// lnorm. $LNORM_FAULTS is the plan, rules separated by commas:
//
//   CALL#N=WHAT    the Nth time that the program makes this call (from 1)
//   CALL*=WHAT     every time
//   CALL%N=WHAT    every time but each Nth (%2: the first, the third, ...)
//
//   CALL: read, write (at positions, too), open, close, rename, mkostemp, lseek, fstat, fchmod, unlink, thread (pthread_create)
//   WHAT: ENOSPC, EIO, ...   the call fails so, having done nothing (close: having closed)
//         short:N            read and write: of at most N bytes
//         half               read and write: of half of the bytes, rounded up
//         size:N             the file that is being read gets this size first
//         SIGTERM, ...       the signal is raised first
//
// Only calls from the program's own code count, not those that libraries make for themselves, but for those that create a
// thread. Where a rule applies, the file $LNORM_FAULTS_HIT is made, so that a test knows when it has been at every call.

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

enum class Kind { fail, shorten, halve, resize, signal };

struct Rule {
  std::string_view call;
  enum class When { once, always, but_each } when = When::always;
  long n = 0;
  Kind kind = Kind::fail;
  long value = 0;  // errno, bytes or signal
  std::atomic<long> calls = 0;
};

struct Name {
  std::string_view name;
  Kind kind;
  long value;
};

constexpr std::array kNames{
    Name{"EINTR", Kind::fail, EINTR},       Name{"EIO", Kind::fail, EIO},
    Name{"ENOSPC", Kind::fail, ENOSPC},     Name{"EPIPE", Kind::fail, EPIPE},
    Name{"EACCES", Kind::fail, EACCES},     Name{"EMFILE", Kind::fail, EMFILE},
    Name{"EPERM", Kind::fail, EPERM},       Name{"EOPNOTSUPP", Kind::fail, EOPNOTSUPP},
    Name{"EAGAIN", Kind::fail, EAGAIN},     Name{"SIGINT", Kind::signal, SIGINT},
    Name{"SIGTERM", Kind::signal, SIGTERM}, Name{"SIGHUP", Kind::signal, SIGHUP},
    Name{"half", Kind::halve, 0},           Name{"short:", Kind::shorten, 0},
    Name{"size:", Kind::resize, 0},
};

[[noreturn]] void refuse(std::string_view rule) {
  std::fprintf(stderr, "LNORM_FAULTS: '%.*s' is no rule\n", static_cast<int>(rule.size()),
               rule.data());
  std::_Exit(125);
}

void parse(std::string_view text, Rule& rule) {
  const std::size_t mark = text.find_first_of("#*%");
  const std::size_t equals = text.find('=');
  if (mark == text.npos || equals == text.npos || mark > equals) refuse(text);
  rule.call = text.substr(0, mark);
  if (text[mark] != '*') {
    rule.when = text[mark] == '#' ? Rule::When::once : Rule::When::but_each;
    rule.n = std::strtol(text.data() + mark + 1, nullptr, 10);
  }
  const std::string_view what = text.substr(equals + 1);
  for (const Name& name : kNames) {
    const bool has_number = name.name.back() == ':';
    if (has_number ? !what.starts_with(name.name) : what != name.name) continue;
    rule.kind = name.kind;
    rule.value = has_number ? std::strtol(what.data() + name.name.size(), nullptr, 10) : name.value;
    return;
  }
  refuse(text);
}

struct Plan {
  std::array<Rule, 8> rules;
  std::size_t count = 0;

  Plan() {
    const char* const text = std::getenv("LNORM_FAULTS");
    std::string_view rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
      if (count == rules.size()) refuse(rest);
      const std::string_view rule = rest.substr(0, rest.find(','));
      parse(rule, rules[count++]);
      rest.remove_prefix(std::min(rest.size(), rule.size() + 1));
    }
  }
};

Plan& plan() {
  static Plan plan;
  return plan;
}

// Where the program itself lies: the first object of the process.
struct Program {
  std::uintptr_t begin = UINTPTR_MAX;
  std::uintptr_t end = 0;

  Program() {
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* program) {
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& segment = info->dlpi_phdr[i];
            if (segment.p_type != PT_LOAD) continue;
            auto& at = *static_cast<Program*>(program);
            const std::uintptr_t start = info->dlpi_addr + segment.p_vaddr;
            at.begin = std::min(at.begin, start);
            at.end = std::max(at.end, start + segment.p_memsz);
          }
          return 1;
        },
        this);
  }
};

bool is_program(const void* caller) {
  static const Program program;
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  return address >= program.begin && address < program.end;
}

// By calls that nothing interposes: what happens here is not the program's doing.
void tell() {
  static std::atomic<bool> told = false;
  if (told.exchange(true)) return;
  const char* const path = std::getenv("LNORM_FAULTS_HIT");
  if (path == nullptr) return;
  const long fd = ::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd >= 0) ::syscall(SYS_close, fd);
}

void resize(int fd, long bytes) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (::truncate(path, bytes) != 0) std::_Exit(125);
}

// What is to become of a call: an errno for it to fail with, or 0; and of how many bytes it may be.
struct Ruling {
  int error = 0;
  std::size_t bytes;
};

// caller: null for any.
Ruling rule_on(std::string_view call, const void* caller, int fd = -1, std::size_t bytes = 0) {
  Ruling ruling{0, bytes};
  if (caller != nullptr && !is_program(caller)) return ruling;
  for (std::size_t i = 0; i < plan().count; ++i) {
    Rule& rule = plan().rules[i];
    if (rule.call != call) continue;
    const long number = ++rule.calls;
    if (rule.when == Rule::When::once && number != rule.n) continue;
    if (rule.when == Rule::When::but_each && number % rule.n == 0) continue;
    tell();
    switch (rule.kind) {
      case Kind::fail:
        ruling.error = static_cast<int>(rule.value);
        break;
      case Kind::shorten:
        ruling.bytes = std::min(ruling.bytes, static_cast<std::size_t>(rule.value));
        break;
      case Kind::halve:
        ruling.bytes = (ruling.bytes + 1) / 2;
        break;
      case Kind::resize:
        resize(fd, rule.value);
        break;
      case Kind::signal:
        ::raise(static_cast<int>(rule.value));
        break;
    }
  }
  return ruling;
}

int fail(int error) {
  errno = error;
  return -1;
}

// The definition that would be called without this library.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define CALLER __builtin_return_address(0)
#define NEXT(name)                                                       \
  [] {                                                                   \
    static decltype(&::name) const real = next<decltype(::name)>(#name); \
    return real;                                                         \
  }()

extern "C" {

ssize_t read(int fd, void* to, size_t bytes) {
  const Ruling ruling = rule_on("read", CALLER, fd, bytes);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(read)(fd, to, ruling.bytes);
}

ssize_t write(int fd, const void* from, size_t bytes) {
  const Ruling ruling = rule_on("write", CALLER, fd, bytes);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(write)(fd, from, ruling.bytes);
}

ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  const Ruling ruling = rule_on("read", CALLER, fd, bytes);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(pread)(fd, to, ruling.bytes, at);
}

ssize_t pread64(int fd, void* to, size_t bytes, off64_t at) {
  const Ruling ruling = rule_on("read", CALLER, fd, bytes);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(pread64)(fd, to, ruling.bytes, at);
}

ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
  const Ruling ruling = rule_on("write", CALLER, fd, bytes);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(pwrite)(fd, from, ruling.bytes, at);
}

ssize_t pwrite64(int fd, const void* from, size_t bytes, off64_t at) {
  const Ruling ruling = rule_on("write", CALLER, fd, bytes);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(pwrite64)(fd, from, ruling.bytes, at);
}

static mode_t mode_of(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  const Ruling ruling = rule_on("open", CALLER);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(open)(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  const Ruling ruling = rule_on("open", CALLER);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(open64)(path, flags, mode);
}

int close(int fd) {
  const Ruling ruling = rule_on("close", CALLER);
  const int result = NEXT(close)(fd);
  return ruling.error != 0 ? fail(ruling.error) : result;
}

int rename(const char* from, const char* to) noexcept {
  const Ruling ruling = rule_on("rename", CALLER);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(rename)(from, to);
}

// The C library has taken the place of the X when opening the file fails.
static int fail_mkostemp(char* path, int error) {
  path[std::strlen(path) - 1] = 'a';
  return fail(error);
}

int mkostemp(char* path, int flags) {
  const Ruling ruling = rule_on("mkostemp", CALLER);
  return ruling.error != 0 ? fail_mkostemp(path, ruling.error) : NEXT(mkostemp)(path, flags);
}

int mkostemp64(char* path, int flags) {
  const Ruling ruling = rule_on("mkostemp", CALLER);
  return ruling.error != 0 ? fail_mkostemp(path, ruling.error) : NEXT(mkostemp64)(path, flags);
}

off_t lseek(int fd, off_t to, int from) noexcept {
  const Ruling ruling = rule_on("lseek", CALLER);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(lseek)(fd, to, from);
}

off64_t lseek64(int fd, off64_t to, int from) noexcept {
  const Ruling ruling = rule_on("lseek", CALLER);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(lseek64)(fd, to, from);
}

int fstat(int fd, struct stat* status) noexcept {
  const Ruling ruling = rule_on("fstat", CALLER);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(fstat)(fd, status);
}

int fstat64(int fd, struct stat64* status) noexcept {
  const Ruling ruling = rule_on("fstat", CALLER);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(fstat64)(fd, status);
}

int fchmod(int fd, mode_t mode) noexcept {
  const Ruling ruling = rule_on("fchmod", CALLER);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(fchmod)(fd, mode);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  const Ruling ruling = rule_on("thread", nullptr);
  return ruling.error != 0 ? ruling.error
                           : NEXT(pthread_create)(thread, attributes, start, argument);
}

int unlink(const char* path) noexcept {
  const Ruling ruling = rule_on("unlink", CALLER);
  return ruling.error != 0 ? fail(ruling.error) : NEXT(unlink)(path);
}

}  // extern "C"
