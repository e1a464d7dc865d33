#pragma once

#include <sys/stat.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

// The edge to the operating system: here files are opened, read, written, made and removed. Calls
// retry EINTR where that is right and throw Error, with the name of the file, where they fail.
namespace lnorm::os {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  // A borrowed descriptor (standard input, standard output) is not closed by the destructor.
  FileDescriptor(int fd, bool owned) : fd_(fd), owned_(owned) {}
  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), owned_(other.owned_) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~FileDescriptor();

  int get() const noexcept { return fd_; }

  // Closes an owned descriptor and checks the answer, which is where some file systems report that
  // data was lost. Standard output counts as owned here: after this nothing more can be written.
  void close(const std::string& name);

 private:
  int fd_ = -1;
  bool owned_ = false;
};

// Where a standard stream is closed, takes its number, so that no file we open gets it and is taken
// for the stream. Reading or writing there fails as it would have.
void hold_standard_streams() noexcept;

FileDescriptor open_for_reading(const std::string& path);

// The descriptor that /dev/stdout, /dev/fd/3 and the like name; whoever started us has opened it.
std::optional<int> inherited_descriptor(std::string_view path);

// Opens what exists (a device, a FIFO) for writing in place.
FileDescriptor open_in_place(const std::string& path);

// How many temporary files and folders there may be at a time.
inline constexpr std::size_t kMaxTemporaries = 8;

// Creates a file of its own name in the directory of path; temporary_path receives the name. It is
// there until rename or remove_quietly takes it away. replaced: the status of the file that it is to
// replace, whose permissions and, where possible, owner it gets; null if there is none.
FileDescriptor create_temporary(const std::string& path, const struct stat* replaced,
                                std::string& temporary_path);

// Opens the temporary file of another process for writing. remove_temporaries() removes it here as well, until
// leave_temporary.
// name: for messages.
FileDescriptor join_temporary(const std::string& path, const std::string& name);
void leave_temporary(const std::string& path) noexcept;

// Creates a folder of its own name in another one, and returns its path. It is there until
// remove_folder_quietly takes it away. Its files are to be called 0, 1, 2 and so on. name: for messages.
std::string create_temporary_folder(const std::string& parent, const std::string& name);

// Creates a file for reading and writing, in $TMPDIR or /tmp, that goes away with its descriptor. name
// receives what to call it in messages.
FileDescriptor create_nameless(std::string& name);

// Throws if the file is write-protected: replacing it would get round that.
void check_writable(const std::string& path);

void rename(const std::string& from, const std::string& to);
void remove_quietly(const std::string& path) noexcept;

// A temporary folder, and its files up to the first number that is not there.
void remove_folder_quietly(const std::string& path) noexcept;

// Returns false where there is one, perhaps since another process has just made it.
bool make_folder(const std::string& path);

// Gives a file the permissions and, where possible, the owner of another.
void take_over(const std::string& path, const struct stat& from);

// The signals that end a program which has something to remove first.
inline constexpr int kEndingSignals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                         SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU};

// Removes every temporary file and folder that is still there. A signal handler may call it: it is
// async-signal-safe.
void remove_temporaries() noexcept;

// Temporary files and folders are removed after us, too, even if we are killed: a process of its
// own waits for our end. This must be called before there are any, and before there are threads.
void guard_temporaries() noexcept;

struct stat status(const FileDescriptor& fd, const std::string& name);

// The status of a path; nothing if no file of any kind is there.
std::optional<struct stat> status(const std::string& path);

// How far a regular file has been read already (standard input may be handed over in the middle).
std::int64_t offset_of(const FileDescriptor& fd) noexcept;

bool is_terminal(const FileDescriptor& fd) noexcept;

// No descriptor is a terminal from now on. Programs call it behind a launcher that has a terminal
// of its own for each of its processes and hands on what they write.
void hide_terminals() noexcept;

// It is counted in characters, and there if the descriptor is a terminal that tells.
std::optional<int> terminal_width(const FileDescriptor& fd) noexcept;

// Where the descriptor is a pipe, has it hold more than the usual 64 KiB, so that its two ends take turns
// less often.
void widen_pipe(const FileDescriptor& fd) noexcept;

// Asks for large pages for memory that has not been touched yet.
void prefer_large_pages(std::span<std::byte> memory) noexcept;

// At least one byte, or 0 at the end.
std::size_t read_some(const FileDescriptor& fd, std::span<std::byte> to, const std::string& name);

// Reads at an offset of a regular file, wherever it has been read up to: all of to, but for the end
// coming first. Returns how many bytes were read. Several threads may do so at once.
std::size_t read_at(const FileDescriptor& fd, std::span<std::byte> to, std::int64_t offset,
                    const std::string& name);

// Writes all of from at an offset of a regular file. Several threads may do so at once.
void write_at(const FileDescriptor& fd, std::span<const std::byte> from, std::int64_t offset,
              const std::string& name);

// Leaves a regular file so many bytes.
void truncate(const FileDescriptor& fd, std::int64_t bytes, const std::string& name);

// Throws ClosedPipe if the reader has left.
void write_all(const FileDescriptor& fd, std::span<const std::byte> from, const std::string& name);

}  // namespace lnorm::os
