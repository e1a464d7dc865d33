#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/io/os.hpp"

namespace lnorm {

// While it lives, what its thread writes to some paths stays in memory; "-" is standard output. One at a time.
class CapturedOutputs {
 public:
  explicit CapturedOutputs(std::initializer_list<std::string> paths);
  CapturedOutputs(const CapturedOutputs&) = delete;
  CapturedOutputs& operator=(const CapturedOutputs&) = delete;
  ~CapturedOutputs();

  // What was written to one of them.
  const std::string& at(const std::string& path) const { return texts_.at(path); }

  // Null if the path is not captured on this thread.
  static std::string* find(const std::string& path);

 private:
  std::map<std::string, std::string> texts_;
};

// Where results go. A regular file appears whole or not at all: bytes go to a temporary file beside
// it, which takes its place in commit(). Standard output, devices and FIFOs are written in place.
// The order for several outputs: write all, finish all, commit all; those in place last, so that whoever
// reads one to its end finds the others.
class ByteSink {
 public:
  // "-" is standard output. Throws Error if the path cannot be written.
  explicit ByteSink(const std::string& path);

  // The output of another process, whose temporary file this is: write_at writes to it, what else is written is only
  // counted, and the other process finishes and commits it. Throws Error if the file cannot be opened.
  ByteSink(const std::string& path, const std::string& temporary);
  ByteSink(const ByteSink&) = delete;
  ByteSink& operator=(const ByteSink&) = delete;
  ~ByteSink();

  // Bytes are written from now on, or only counted where another process writes them.
  void take_over(bool writes);

  // Messages call it so: the path, or "standard output".
  const std::string& name() const noexcept { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  // Where the bytes end up, the same for every name of a place; empty for a device that takes any
  // number of outputs (/dev/null).
  std::string destination() const;

  bool is_terminal() const noexcept { return os::is_terminal(fd_); }
  bool is_regular_file() const;

  // A reader that leaves is no reason to stop from now on (there is no ClosedPipe): the rest is
  // dropped.
  void outlive_reader() noexcept { outlives_reader_ = true; }

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  // The file that is to take its place, where there is one.
  const std::optional<std::string>& temporary() const noexcept { return temporary_; }

  // Whether write_at is there: for a regular file that appears whole.
  bool has_random_access() const noexcept { return temporary_.has_value(); }

  // How many bytes have been given to write, advance included.
  std::int64_t written() const noexcept { return written_; }

  // Writes bytes that follow those given to write, at a distance from them; before more is given to write
  // comes advance. Several threads may do so at once.
  void write_at(std::int64_t distance, std::span<const std::byte> bytes) const;

  // So many bytes that write_at has written count as given to write. Requires has_random_access().
  void advance(std::int64_t bytes);

  // Writes over bytes that were given to write. Requires has_random_access().
  void rewrite(std::int64_t offset, std::span<const std::byte> bytes);

  // Takes back all that was written but so many bytes. Throws Error if it has been handed on to where nothing
  // can be taken back.
  void rewind(std::int64_t written);

  // Hands on what is buffered.
  void flush();

  // Hands on the last bytes. Throws Error if anything was lost.
  void finish();

  // Puts the finished file in its place; an output in place is closed, after which its reader sees the
  // end. Throws Error if anything was lost.
  void commit();

 private:
  void hand_on(std::span<const std::byte> bytes);

  std::string name_;
  std::string target_;
  std::optional<std::string> temporary_;
  os::FileDescriptor fd_;
  std::string* captured_ = nullptr;
  std::vector<std::byte> buffer_;
  std::int64_t written_ = 0;    // or buffered
  std::int64_t handed_on_ = 0;  // of these
  bool rewound_ = false;        // the file may have more bytes than it is to keep
  bool outlives_reader_ = false;
  bool reader_has_left_ = false;
  bool is_joined_ = false;  // another process owns it
  bool takes_over_ = false;
};

}  // namespace lnorm
