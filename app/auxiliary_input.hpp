#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "each_tensor.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/open_tensor.hpp"

namespace lnorm::app {

// What may stand in the place of a file's name: a number, or JSON. Null if it is neither. Throws Error.
std::unique_ptr<TensorSource> parse_literal(const std::string& option, const std::string& text);

// A tensor that an option names beside each input: a file or a member of one; for several inputs with {}, {1} in its
// name.
class AuxiliaryInput {
 public:
  using ParseLiteral = std::unique_ptr<TensorSource> (*)(const std::string& option,
                                                         const std::string& text);

  // input: how x is read; a file whose dtype it can be takes --as as well. parse: takes what may stand in the place of a
  // name, where that may be.
  AuxiliaryInput(std::string option, std::string word, const ReadOptions& input,
                 ParseLiteral parse = nullptr)
      : option_(std::move(option)),
        word_(std::move(word)),
        parse_(parse),
        finder_({.from = {}, .as = input.as, .files = input.files}) {}

  // One of a command's inputs that is not the first: OUTPUT, --dy.
  static AuxiliaryInput at_position(std::size_t position, std::string option, std::string word,
                                    const InputArguments& input) {
    AuxiliaryInput result(std::move(option), std::move(word), input.options);
    result.finder_ = TensorFinder(input.reading(position), Role::input);
    return result;
  }

  // What there is for an input. Returns whether it is another one than the last time. Throws Error.
  bool find(const InputName& name);

  const std::string& word() const noexcept { return word_; }

  // Describes what was found. Its name begins with the option.
  const TensorInfo& info() const noexcept { return info_; }

  // What was found, for one input after another. Throws Error.
  std::unique_ptr<TensorSource> open();

  // Whether there is no second time: of standard input that does not stand for several.
  bool is_read_once() const noexcept;

  // Follows the last element of what was opened.
  void finish() const;

  bool has_dtype(DType dtype) const { return latest_ && info_.dtype == dtype; }
  bool is_raw() const { return latest_ && latest_->format == Format::raw; }

 private:
  std::string option_;
  std::string word_;
  ParseLiteral parse_;
  TensorFinder finder_;
  // What the word stood for the last time, and what was found.
  std::string latest_word_;
  std::optional<Selected> latest_;
  TensorInfo info_;
  bool was_opened_ = false;
};

// Calls check. Of many tensors it is this one that companions do not fit: what is thrown names it then.
template <class Check>
void check_auxiliary_inputs(const TensorInfo& x, const InputName& name, Check check) {
  try {
    check();
  } catch (const SystemError&) {
    throw;
  } catch (const Error& error) {
    if (!name.several) throw;
    throw Error(concat(printable(x.name), ": ", error.what()), error);
  }
}

}  // namespace lnorm::app
