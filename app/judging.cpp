#include "judging.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/nearest.hpp"
#include "lnorm/core/pattern.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/wrong_kernels.hpp"

namespace lnorm::app {

namespace {

// known: ids, or patterns of them.
void check_ids(std::string_view option, const std::vector<std::string>& patterns,
               const std::vector<std::string>& known, const char* otherwise) {
  for (const std::string& pattern : patterns) {
    const bool is_known = std::any_of(known.begin(), known.end(), [&](const std::string& id) {
      return match(id, pattern) || match(pattern, id);
    });
    if (is_known) continue;
    const std::string near =
        nearest(pattern, known.size(), [&](std::size_t i) { return known[i]; });
    throw Error(concat(option, ": no wrong kernel is called '", printable(pattern), "'"),
                near.empty() ? otherwise : concat("did you mean ", near, "?"));
  }
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view id) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return match(pattern, id).has_value(); });
}

}  // namespace

bool has_criteria(const Arguments& arguments) {
  const Criteria& criteria = arguments.criteria;
  return arguments.tensors.contains(TensorRole::baseline) || arguments.rtol || arguments.atol ||
         criteria.bounds_elements() || criteria.max_mismatched || criteria.bounds_all_together();
}

Criteria criteria_of(const Arguments& arguments, const ToleranceOfNames* own, DType actual,
                     DType expected, std::optional<double> baseline) {
  Criteria criteria = arguments.criteria;
  criteria.baseline = baseline;
  if (own != nullptr) {
    criteria.tolerance = {own->rtol, own->atol};
  } else if (arguments.rtol || arguments.atol) {
    criteria.tolerance = {arguments.rtol.value_or(0), arguments.atol.value_or(0)};
  } else if (!criteria.bounds_elements() &&
             (criteria.max_mismatched || !criteria.bounds_all_together())) {
    criteria.tolerance = default_tolerance(actual, expected);
  }
  return criteria;
}

ChooseKernel kernel_choice(const Arguments& arguments) {
  std::vector<std::string> known;
  const bool is_check = arguments.command == kCheck;
  for (const WrongKernel& kernel : wrong_kernels()) {
    const std::vector<std::string> ids = usual_ids(kernel);
    known.insert(known.end(), ids.begin(), ids.end());
    if (kernel.letter() == 'P')
      known.push_back(concat(kernel.id.substr(0, kernel.id.find('P')), '*'));
  }
  // Numbers that outputs tell are found where there is an output.
  known.insert(known.end(), kFoundIds.begin(),
               kFoundIds.begin() + (is_check ? kFoundIds.size() : kWrittenIds));
  if (is_check || arguments.quantization) {
    for (const QuantizedKernel& kernel : quantized_kernels()) {
      const std::size_t number = kernel.id.find("{}");
      known.push_back(concat(kernel.id.substr(0, number), number == kernel.id.npos ? "" : "*"));
    }
  }
  const char* const otherwise = arguments.quantization
                                    ? "lnorm mutants --list --quantize row lists them"
                                    : "lnorm mutants --list lists them";
  check_ids("--kernels", arguments.kernels, known, otherwise);
  check_ids("--skip-kernels", arguments.skipped_kernels, known, otherwise);
  return [&arguments](std::string_view id) {
    // They are off by less than an ulp, which no tolerance above one is meant to see; of q that is much.
    const bool is_finer = !arguments.quantization && (id == "truncated" || id == "away");
    if (is_finer && arguments.command == kMutants && !arguments.lists_kernels &&
        arguments.kernels.empty() && arguments.criteria.max_ulp.value_or(1) >= 1) {
      return false;
    }
    return (arguments.kernels.empty() || matches_any(arguments.kernels, id)) &&
           !matches_any(arguments.skipped_kernels, id);
  };
}

}  // namespace lnorm::app
