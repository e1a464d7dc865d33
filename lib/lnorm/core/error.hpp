#pragma once

#include <exception>
#include <string>
#include <utility>

namespace lnorm {

// What the caller of the library can set so that it works. A program says which option that is.
struct Remedy {
  enum class Setting {
    none,
    axes,           // LayerNormOptions::axes, to value
    dtype,          // ReadOptions::as, to value
    format,         // ReadOptions::from, to value
    raw_elements,   // ReadOptions::from, as and shape
    rounded_sum,    // the sum with a residual in the output dtype
    tensor_name,    // TensorInfo::name
    regular_output  // a file in place of a pipe
  };
  Setting setting = Setting::none;
  std::string value = {};
};

// The one error of the library: what() is a single line that says where, what was found and what
// was expected; hint() says what to try, or is empty, beside the remedy(). The library throws it and never prints.
class Error : public std::exception {
 public:
  explicit Error(std::string message, std::string hint = {}, Remedy remedy = {})
      : message_(std::move(message)), hint_(std::move(hint)), remedy_(std::move(remedy)) {}
  Error(std::string message, Remedy remedy) : Error(std::move(message), {}, std::move(remedy)) {}
  // Another message with the same way out.
  Error(std::string message, const Error& cause)
      : Error(std::move(message), cause.hint_, cause.remedy_) {}

  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& hint() const noexcept { return hint_; }
  const Remedy& remedy() const noexcept { return remedy_; }

 private:
  std::string message_;
  std::string hint_;
  Remedy remedy_;
};

// The operating system could not do what was asked of it: no fault of a file's contents.
class SystemError : public Error {
 public:
  using Error::Error;
};

// The reader of our output has left (EPIPE). This is no failure of a program in a pipe.
class ClosedPipe : public std::exception {
 public:
  const char* what() const noexcept override { return "the reader of the output has left"; }
};

}  // namespace lnorm
