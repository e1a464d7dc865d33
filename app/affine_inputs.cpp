#include "affine_inputs.hpp"

#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

#include "each_tensor.hpp"
#include "lnorm/core/error.hpp"
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

// A file, a member of one, JSON, or a number.
std::unique_ptr<TensorSource> open_term(const std::string& option, const std::string& name,
                                        std::optional<DType> as) {
  if (name.empty()) throw Error(concat(option, ": '' is not the name of a file"));
  if (!os::status(name)) {
    if (auto literal = parse_literal(option, name)) return literal;
  }
  try {
    return open_tensor(name, {.from = {}, .as = as}).source;
  } catch (const Error& error) {
    throw Error(concat(option, ' ', error.what()), error.hint());
  }
}

}  // namespace

void check_inputs(const InputArguments& input, const NormalizationArguments& arguments) {
  int standard_inputs = 0;
  for (const auto& name : {std::optional(input.name), arguments.weight, arguments.bias}) {
    if (name && is_standard_input(*name)) ++standard_inputs;
  }
  if (standard_inputs > 1) throw Error("standard input is named for two inputs, expected one");
}

void AffineInputs::check_as(const TensorInfo& input) const {
  if (!reads_as_) app::check_as(as_, input);
}

const Affine& AffineInputs::of(const Plan& plan, const OpenedTensor& input) {
  if (shape_ == plan.normalized_shape()) return affine_;
  const bool plus_one = arguments_.options.zero_centered_weight;
  const auto read = [&](std::string_view role, const std::optional<std::string>& name,
                        bool add_one) -> AffineTerm {
    if (!name) return {};
    const std::string option = concat("--", role);
    auto source = open_term(option, *name, as_);
    reads_as_ = reads_as_ || source->info().dtype == as_;
    TensorInfo info = source->info();
    if (info.name != option) info.name = concat(option, ' ', *name);  // not of a literal
    check_affine_shape(info, plan);
    source = gathered(std::move(source));
    return {source->info(), read_all(*source), add_one};
  };
  try {
    affine_ = {read("weight", arguments_.weight, plus_one), read("bias", arguments_.bias, false)};
  } catch (const Error& error) {
    if (input.format != Format::jsonl) throw;
    // Of many tensors it is this one whose rows do not fit.
    throw Error(concat(printable(input.source->info().name), ": ", error.what()), error.hint());
  }
  shape_ = plan.normalized_shape();
  return affine_;
}

}  // namespace lnorm::app
