#include "auxiliary_input.hpp"

#include <cmath>
#include <string_view>

#include "lnorm/core/pattern.hpp"
#include "lnorm/io/json/json_number.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/os.hpp"
#include "option_value.hpp"

namespace lnorm::app {

std::unique_ptr<TensorSource> parse_literal(const std::string& option, const std::string& text) {
  const std::string_view content = trimmed_json(text);
  double number = 0;
  if (parse_real(content, number)) {
    if (std::isinf(number)) {
      throw Error(concat(option, ": '", content, "' is not in the range of float64"));
    }
    char buffer[kJsonNumberRoom];
    return parse_json(option, std::string(json_number(number, buffer)));
  }
  const std::string word = lower_case(content);
  if (word == "nan") return parse_json(option, "NaN");
  if (word == "inf" || word == "+inf" || word == "infinity") return parse_json(option, "Infinity");
  if (word == "-inf" || word == "-infinity") return parse_json(option, "-Infinity");
  const bool is_json = content.find_first_of("[{") == 0 || content == "null";
  try {
    return is_json ? parse_json(option, text) : nullptr;
  } catch (const Error& error) {
    throw Error(error.what());  // hints are for files
  }
}

bool AuxiliaryInput::find(const InputName& name) {
  std::string word = word_;
  if (has_placeholder(word) && !os::status(word)) {
    word = substitute(word, name.name, name.captures, option_);
  }
  if (word.empty()) throw Error(concat(option_, ": '' is not the name of a file"));
  if (latest_ && word == latest_word_) return false;
  latest_.reset();
  was_opened_ = false;
  std::unique_ptr<TensorSource> literal;
  if (parse_ != nullptr && !os::status(word)) literal = parse_(option_, word);
  if (literal) {
    latest_ = Selected{set_of(std::move(literal), ""), 0, Format::json, "", "", {}};
  } else {
    try {
      latest_ = finder_.find(word);
    } catch (const MissingTensor& error) {
      // A name in place of {} would be that of every input.
      const std::string message = concat(option_, ' ', error.what());
      throw has_placeholder(word_) ? Error(message) : Error(message, error);
    } catch (const Error& error) {
      throw Error(concat(option_, ' ', error.what()), error);
    }
  }
  latest_word_ = word;
  info_ = latest_->set->info(latest_->index);
  if (info_.name != option_) info_.name = concat(option_, ' ', word);  // not of a literal
  return true;
}

std::unique_ptr<TensorSource> AuxiliaryInput::open() {
  // A file of one tensor gives it once.
  if (std::exchange(was_opened_, true) && latest_->set->is_pipe()) {
    latest_ = finder_.find(latest_word_);
  }
  return latest_->set->open(latest_->index);
}

bool AuxiliaryInput::is_read_once() const noexcept {
  return is_standard_input(word_) && !has_placeholder(word_);
}

void AuxiliaryInput::finish() const {
  // The rest of a pipe is for the next one, if the word stands for several.
  if (!has_placeholder(word_)) latest_->set->finish();
}

}  // namespace lnorm::app
