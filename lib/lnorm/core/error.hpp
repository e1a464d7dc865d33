#pragma once

#include <exception>
#include <string>
#include <utility>

namespace lnorm {

// The one error of the library: what() is a single line that says where, what was found and what
// was expected; hint() says what to try, or is empty. The library throws it and never prints.
class Error : public std::exception {
 public:
  explicit Error(std::string message, std::string hint = {})
      : message_(std::move(message)), hint_(std::move(hint)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& hint() const noexcept { return hint_; }

 private:
  std::string message_;
  std::string hint_;
};

// The operating system could not do what was asked of it: no fault of a file's contents.
class SystemError : public Error {
 public:
  using Error::Error;
};

// The reader of our output has left (EPIPE). For a program in a pipe that is not a failure.
class ClosedPipe : public std::exception {
 public:
  const char* what() const noexcept override { return "the reader of the output has left"; }
};

}  // namespace lnorm
