#include "affine_inputs.hpp"

#include <cmath>
#include <memory>
#include <string_view>
#include <utility>

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
  const bool is_json = content.find_first_of("[{") == 0 || content == "NaN" || content == "null" ||
                       content == "Infinity" || content == "-Infinity";
  return is_json ? parse_json(option, text) : nullptr;
}

AffineTerm read_term(std::string_view role, const std::optional<std::string>& name,
                     std::optional<DType> as, const Plan& plan, bool plus_one) {
  if (!name) return {};
  const std::string option = concat("--", role);
  if (name->empty()) throw Error(concat(option, ": '' is not the name of a file"));
  std::unique_ptr<TensorSource> source;
  if (!os::status(*name)) source = parse_literal(option, *name);
  if (!source) source = open_tensor(*name, {.from = {}, .as = as}).source;
  check_affine_shape(role, source->info(), plan);
  source = gathered(std::move(source));
  return {source->info(), read_all(*source), plus_one};
}

}  // namespace

void check_inputs(const InputArguments& input, const NormalizationArguments& arguments) {
  int standard_inputs = 0;
  for (const auto& name : {std::optional(input.name), arguments.weight, arguments.bias}) {
    if (name && is_standard_input(*name)) ++standard_inputs;
  }
  if (standard_inputs > 1) throw Error("standard input is named for two inputs, expected one");
}

const Affine& AffineInputs::of(const Plan& plan, const OpenedTensor& input) {
  if (shape_ == plan.normalized_shape()) return affine_;
  const bool plus_one = arguments_.options.zero_centered_weight;
  try {
    affine_ = {read_term("weight", arguments_.weight, as_, plan, plus_one),
               read_term("bias", arguments_.bias, as_, plan, false)};
  } catch (const Error& error) {
    if (input.format != Format::jsonl) throw;
    // Of many tensors it is this one whose rows do not fit.
    throw Error(concat(printable(input.source->info().name), ": ", error.what()), error.hint());
  }
  shape_ = plan.normalized_shape();
  return affine_;
}

}  // namespace lnorm::app
