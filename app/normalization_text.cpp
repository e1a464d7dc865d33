#include "normalization_text.hpp"

#include <variant>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm::app {

std::string_view option_of(const Formula& formula) { return formula.rms ? "--rms" : ""; }

std::string normalization_text(const LayerNormOptions& options) {
  std::vector<std::string> words;
  const auto add_list = [&](const char* option, const std::vector<std::int64_t>& numbers) {
    words.push_back(concat(option, ' ', joined(numbers, ",", [](std::int64_t number) {
                             return std::to_string(number);
                           })));
  };
  if (const auto* const first = std::get_if<FirstAxis>(&options.axes)) {
    if (first->axis != FirstAxis{}.axis) add_list("--axis", {first->axis});
  } else if (const auto* const shape = std::get_if<NormalizedShape>(&options.axes)) {
    add_list("--normalized-shape", shape->extents);
  } else if (const auto* const list = std::get_if<AxisList>(&options.axes)) {
    add_list("--axes", list->axes);
  } else if (const auto* const groups = std::get_if<Groups>(&options.axes)) {
    add_list("--groups", {groups->groups});
    if (groups->channel_axis != Groups{}.channel_axis) {
      add_list("--channel-axis", {groups->channel_axis});
    }
  }
  if (options.affine_axes) add_list("--affine-axes", options.affine_axes->axes);
  const Formula& formula = options.formula;
  const Formula usual;
  if (formula.eps != usual.eps) words.push_back("--eps " + value_text(formula.eps));
  if (formula.eps_on != usual.eps_on) {
    words.push_back(concat("--eps-on ", formula.eps_place().name));
  }
  if (formula.ddof != usual.ddof) add_list("--ddof", {formula.ddof});
  if (!option_of(formula).empty()) words.emplace_back(option_of(formula));
  if (options.zero_centered_weight) words.emplace_back("--zero-centered-weight");
  const Rounding& rounding = options.rounding;
  if (rounding != Rounding{}) {
    words.push_back(concat("--round ", rounding.xhat ? "xhat" : "",
                           rounding.xhat && rounding.product ? "," : "",
                           rounding.product ? "product" : ""));
  }
  return words.empty() ? "no options" : joined(words, " ");
}

}  // namespace lnorm::app
