#include "affine_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/pattern.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/json/json_number.hpp"
#include "lnorm/io/json/json_text.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/layout/reorder.hpp"
#include "parse_values.hpp"

namespace lnorm::app {

namespace {

// What may stand in the place of a name: a number, or JSON. Null if it is neither.
std::unique_ptr<TensorSource> parse_literal(const std::string& option, const std::string& text) {
  const std::string_view content = trimmed_json(text);
  double number = 0;
  if (parse_real(content, number)) {
    if (std::isinf(number)) {
      throw Error(concat(option, ": '", content, "' is not in the range of float64"));
    }
    char buffer[32];
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

}  // namespace

void check_inputs(const InputArguments& input, const NormalizationArguments& arguments) {
  auto names = input.names;
  for (const auto& name : {arguments.weight, arguments.bias}) {
    if (name) names.push_back(*name);
  }
  if (std::count_if(names.begin(), names.end(), is_standard_input) > 1) {
    throw Error("standard input is named for two inputs, expected one");
  }
}

void AffineInput::find(const InputName& name) {
  std::string word = *word_;
  if (has_placeholder(word) && !os::status(word)) {
    word = substitute(word, name.name, name.captures, option_);
  }
  if (word.empty()) throw Error(concat(option_, ": '' is not the name of a file"));
  if (latest_ && word == latest_word_) return;
  latest_.reset();
  is_read_ = false;
  std::unique_ptr<TensorSource> literal;
  if (!os::status(word)) literal = parse_literal(option_, word);
  if (literal) {
    latest_ = Selected{set_of(std::move(literal), ""), 0, Format::json, "", "", {}};
  } else {
    try {
      latest_ = finder_.find(word);
    } catch (const Error& error) {
      throw Error(concat(option_, ' ', error.what()), error.hint());
    }
  }
  latest_word_ = word;
  info_ = latest_->set->info(latest_->index);
  if (info_.name != option_) info_.name = concat(option_, ' ', word);  // not of a literal
}

void AffineInput::check(const Plan& plan, const InputName& name) {
  if (!word_) return;
  find(name);
  check_affine_shape(info_, plan);
}

AffineTerm AffineInput::read() {
  const auto source = gathered(latest_->set->open(latest_->index));
  AffineTerm term(source->info(), read_all(*source), plus_one_);
  // The rest of a pipe is for the next one, if the word stands for several.
  if (!has_placeholder(*word_)) latest_->set->finish();
  is_read_ = true;
  return term;
}

AffineInputs::AffineInputs(const NormalizationArguments& arguments, std::optional<DType> as,
                           double scale)
    : as_(as),
      weight_("--weight", arguments.weight, as, arguments.options.zero_centered_weight),
      bias_("--bias", arguments.bias, as, false),
      affine_({}, {}, scale) {}

void AffineInputs::check(const Plan& plan, const TensorInfo& x, const InputName& name) {
  try {
    weight_.check(plan, name);
    bias_.check(plan, name);
  } catch (const SystemError&) {
    throw;
  } catch (const Error& error) {
    if (!name.several) throw;
    // Of many tensors it is this one that they do not fit.
    throw Error(concat(printable(x.name), ": ", error.what()), error.hint());
  }
  if (as_ && !weight_.has_dtype(*as_) && !bias_.has_dtype(*as_)) check_as(as_, x);
}

const Affine& AffineInputs::of(const Plan& plan, const TensorInfo& x, const InputName& name) {
  check(plan, x, name);
  const bool other_weight = weight_.is_unread();
  const bool other_bias = bias_.is_unread();
  if (other_weight || other_bias) {
    affine_ = {other_weight ? weight_.read() : AffineTerm(affine_.unscaled_weight()),
               other_bias ? bias_.read() : AffineTerm(affine_.unscaled_bias()), affine_.scale()};
  }
  return affine_;
}

}  // namespace lnorm::app
