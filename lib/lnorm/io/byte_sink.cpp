#include "lnorm/io/byte_sink.hpp"

#include <unistd.h>

#include <filesystem>
#include <map>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kBufferSize = std::size_t{1} << 16;

// The file behind a symbolic link, there or not: that is the one to replace, not the link.
std::string behind_links(const std::string& path) {
  std::filesystem::path target = path;
  std::error_code error;  // of a name that cannot be; creating the file says so better
  for (int links = 0; links < 40 && std::filesystem::is_symlink(target, error); ++links) {
    target = target.parent_path() / std::filesystem::read_symlink(target, error);
  }
  return target.string();
}

thread_local std::map<std::string, std::string>* captured_texts = nullptr;

}  // namespace

CapturedOutputs::CapturedOutputs(std::initializer_list<std::string> paths) {
  for (const std::string& path : paths) texts_[path];
  captured_texts = &texts_;
}

CapturedOutputs::~CapturedOutputs() { captured_texts = nullptr; }

std::string* CapturedOutputs::find(const std::string& path) {
  if (captured_texts == nullptr) return nullptr;
  const auto found = captured_texts->find(path);
  return found == captured_texts->end() ? nullptr : &found->second;
}

ByteSink::ByteSink(const std::string& path)
    : name_(path == "-" ? "standard output" : path),
      target_(path),
      captured_(CapturedOutputs::find(path)) {
  if (captured_ != nullptr) return;
  const auto inherited = path == "-" ? STDOUT_FILENO : os::inherited_descriptor(path);
  if (inherited) {
    fd_ = os::FileDescriptor(*inherited, false);
    os::widen_pipe(fd_);
    return;
  }
  const auto found = os::status(path);
  if (found && S_ISDIR(found->st_mode)) {
    throw Error(concat(printable(path), ": is a directory, expected a file to write"));
  }
  if (found && !S_ISREG(found->st_mode)) {
    fd_ = os::open_in_place(path);
    os::widen_pipe(fd_);
    return;
  }
  if (path.empty() || path.back() == '/') {
    throw Error(concat("'", printable(path), "': expected the name of a file to write"));
  }
  if (found) os::check_writable(path);
  target_ = behind_links(path);
  std::string temporary;
  fd_ = os::create_temporary(target_, found ? &*found : nullptr, temporary);
  temporary_ = temporary;
}

ByteSink::ByteSink(const std::string& path, const std::string& temporary)
    : name_(path), target_(path), temporary_(temporary), is_joined_(true) {
  fd_ = os::join_temporary(temporary, path);
}

ByteSink::~ByteSink() {
  if (!temporary_) return;
  is_joined_ ? os::leave_temporary(*temporary_) : os::remove_quietly(*temporary_);
}

void ByteSink::take_over(bool writes) {
  flush();
  takes_over_ = writes;
}

std::string ByteSink::destination() const {
  const auto found = temporary_ ? os::status(target_) : os::status(fd_, name_);
  if (!found) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(target_, error);
    const auto canonical = std::filesystem::weakly_canonical(absolute, error);
    return error ? target_ : canonical.string();
  }
  if (S_ISCHR(found->st_mode) && !is_terminal()) return "";
  return concat(found->st_dev, ':', found->st_ino);
}

bool ByteSink::is_regular_file() const { return S_ISREG(os::status(fd_, name_).st_mode); }

void ByteSink::write_at(std::int64_t distance, std::span<const std::byte> bytes) const {
  os::write_at(fd_, bytes, written_ + distance, name_);
}

void ByteSink::advance(std::int64_t bytes) {
  flush();
  written_ += bytes;
  handed_on_ = written_;
}

void ByteSink::rewrite(std::int64_t offset, std::span<const std::byte> bytes) {
  flush();
  if (is_joined_) return;
  os::write_at(fd_, bytes, offset, name_);
}

void ByteSink::rewind(std::int64_t written) {
  if (written >= handed_on_) {
    buffer_.resize(static_cast<std::size_t>(written - handed_on_));
  } else if (has_random_access()) {
    buffer_.clear();
    handed_on_ = written;
  } else {
    throw Error(concat(printable(name_), ": what is written there cannot be taken back"));
  }
  written_ = written;
  rewound_ = true;
}

void ByteSink::write(std::span<const std::byte> bytes) {
  written_ += std::ssize(bytes);
  if (buffer_.size() + bytes.size() > kBufferSize) flush();
  if (bytes.size() >= kBufferSize) {
    hand_on(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void ByteSink::flush() {
  hand_on(buffer_);
  buffer_.clear();
}

void ByteSink::hand_on(std::span<const std::byte> bytes) {
  handed_on_ += std::ssize(bytes);
  if (reader_has_left_ || (is_joined_ && !takes_over_)) return;
  if (captured_ != nullptr) {
    captured_->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return;
  }
  try {
    if (has_random_access()) {
      os::write_at(fd_, bytes, handed_on_ - std::ssize(bytes), name_);
    } else {
      os::write_all(fd_, bytes, name_);
    }
  } catch (const ClosedPipe&) {
    if (!outlives_reader_) throw;
    reader_has_left_ = true;
  }
}

void ByteSink::finish() {
  flush();
  if (rewound_ && has_random_access() && !is_joined_) os::truncate(fd_, handed_on_, name_);
  if (temporary_) fd_.close(name_);
}

void ByteSink::commit() {
  if (is_joined_) return;
  if (!temporary_) return fd_.close(name_);
  os::rename(*temporary_, target_);
  temporary_.reset();
}

}  // namespace lnorm
