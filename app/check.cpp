#include "lnorm/pipeline/check.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "affine_inputs.hpp"
#include "auxiliary_input.hpp"
#include "commands.hpp"
#include "compare_criteria.hpp"
#include "each_tensor.hpp"
#include "lnorm/core/axes.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/nearest.hpp"
#include "lnorm/core/pattern.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/diagnosis/wrong_kernels.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "residual_input.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

// Throws Error for a pattern that no wrong kernel matches.
void check_ids(std::string_view option, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    const auto kernels = wrong_kernels();
    const bool is_known = std::any_of(kernels.begin(), kernels.end(), [&](const WrongKernel& k) {
      return match(pattern, k.id).has_value();
    });
    const bool is_found = std::any_of(kFoundIds.begin(), kFoundIds.end(), [&](std::string_view id) {
      return match(id, pattern) || match(pattern, id);
    });
    if (is_known || is_found) continue;
    const std::string near =
        nearest(pattern, kernels.size(), [&](std::size_t i) { return std::string(kernels[i].id); });
    throw Error(
        concat(option, ": no wrong kernel is called '", printable(pattern), "'"),
        near.empty() ? "docs/kernel-authors.md lists them" : concat("did you mean ", near, "?"));
  }
}

bool matches_any(const std::vector<std::string>& patterns, std::string_view id) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return match(pattern, id).has_value(); });
}

// OUTPUT of several inputs is found by their names, unless it says how itself.
std::string output_word(const Arguments& arguments, const Inputs& inputs) {
  const std::string& word = arguments.checked;
  const auto* const selection = std::get_if<Selection>(&inputs);
  if (selection == nullptr || !selection->several || has_placeholder(word)) return word;
  return concat(word.substr(0, word.find(":*")), ":{}");
}

class Checking {
 public:
  Checking(const Arguments& arguments, const std::string& output)
      : arguments_(arguments),
        backend_(find_backend(arguments.normalization.kernel)),
        residual_(arguments.normalization, arguments.input.options),
        affine_inputs_(arguments.normalization, arguments.input.options, residual_, 1, &output_),
        output_(AuxiliaryInput::at_position(1, "OUTPUT", output, arguments.input)) {
    check_ids("--kernels", arguments.kernels);
    check_ids("--skip-kernels", arguments.skipped_kernels);
  }

  void plan(const TensorInfo& x, const InputName& name) {
    affine_inputs_.check(make_plan(x, name), x, name);
  }

  void run(OpenedTensor& tensor, const InputName& name, TensorWork& work) {
    const TensorInfo x = tensor.source->info();
    const Plan plan = make_plan(x, name);
    const Affine& affine = affine_inputs_.of(plan, x, name);
    const auto alone = std::move(tensor.source);
    auto source = residual_.add_to(std::make_unique<LentSource>(*alone), plan.out, work.threads());
    auto actual = rows_beside(x, output_.open());
    // Both are read again, by rows.
    if (!source->has_random_access() && explains()) source = spooled(*source);
    if (!actual->has_random_access()) actual = spooled(*actual);
    const NormalizationArguments& normalization = arguments_.normalization;
    const bool has_residual = normalization.residual.has_value();
    const CheckInputs inputs{
        .x = *source,
        .actual = *actual,
        .alone = has_residual && alone->has_random_access() ? alone.get() : nullptr,
        .is_sum = has_residual && !normalization.round_sum,
        .weight = affine_inputs_.weight(),
        .bias = affine_inputs_.bias(),
        .affine = affine};
    const RunOptions options = work.begin(plan, *source, nullptr, backend_.name, false);
    Check found = check(inputs, plan, backend_, check_options(plan.out), options);
    work.end();
    source->finish();
    alone->finish();
    actual->finish();
    residual_.finish();
    output_.finish();
    if (work.has_report()) checks_.push_back({name.title, std::move(found)});
  }

  // Writes all reports. Returns the exit status.
  int report(bool several) const {
    if (!arguments_.work.ranks->is_first()) return 0;
    const auto save = [&](const std::optional<std::string>& path, auto write) {
      if (!path) return;
      ByteSink out(*path);
      write(out);
      out.finish();
      out.commit();
    };
    save(arguments_.save_json, [&](ByteSink& out) { write_json_report(several, out); });
    save(arguments_.save_junit, [&](ByteSink& out) { write_junit(checks_, out); });
    if (!arguments_.quiet) {
      ByteSink out("-");
      out.outlive_reader();
      if (arguments_.report == Report::json) {
        write_json_report(several, out);
      } else {
        write_text_report(several, out);
      }
      out.finish();
      out.commit();
    }
    int status = 0;
    for (const NamedCheck& tensor : checks_) status = std::max(status, tensor.check.exit_status());
    return status;
  }

 private:
  // The exit status and the verdict take no explanation.
  bool explains() const {
    return !arguments_.quiet || arguments_.save_json || arguments_.save_junit;
  }

  Plan make_plan(const TensorInfo& x, const InputName& name) {
    check_auxiliary_inputs(x, name, [&] { output_.find(name); });
    const TensorInfo& actual = output_.info();
    if (!is_floating(actual.dtype)) {
      throw Error(concat(printable(actual.name), ": is ", lnorm::name(actual.dtype), ", expected ",
                         dtype_list(is_floating), ": nothing says the scale of integers"));
    }
    check_same_shape(elements_beside(x, actual), x);
    const TensorInfo sum = residual_.check(x, actual.dtype, name);
    Plan plan = lnorm::make_plan(sum, arguments_.normalization.options, actual.dtype,
                                 {.whole = true, .ordered = true});
    return plan;
  }

  CheckOptions check_options(DType out) const {
    const NormalizationArguments& normalization = arguments_.normalization;
    CheckOptions options{.arithmetic = arguments_.arithmetic.value_or(
                             out == DType::float64 ? DType::float64 : DType::float32),
                         .depth = arguments_.depth,
                         .zero_centered_weight = normalization.options.zero_centered_weight,
                         .has_weight = normalization.weight.has_value(),
                         .has_bias = normalization.bias.has_value(),
                         .rounding = normalization.options.rounding,
                         .kernels = {},
                         .criteria = {}};
    if (explains()) {
      options.kernels = [this](std::string_view id) {
        return (arguments_.kernels.empty() || matches_any(arguments_.kernels, id)) &&
               !matches_any(arguments_.skipped_kernels, id);
      };
    }
    if (has_criteria(arguments_)) options.criteria = criteria_of(arguments_, nullptr, out, out);
    return options;
  }

  void write_json_report(bool several, ByteSink& out) const {
    several ? write_json(checks_, out) : write_json(checks_.front().check, out);
  }

  void write_text_report(bool several, ByteSink& out) const {
    Style style = output_style(arguments_.color, Style::kAnyWidth);
    style.width = arguments_.linewidth.value_or(style.width);
    several ? write_text(checks_, style, out) : write_text(checks_.front().check, style, out);
  }

  const Arguments& arguments_;
  const Backend& backend_;
  ResidualInput residual_;
  AffineInputs affine_inputs_;
  AuxiliaryInput output_;
  std::vector<NamedCheck> checks_;
};

}  // namespace

int check(const Arguments& arguments) {
  const InputArguments& input = arguments.input;
  check_inputs(input, arguments.normalization, arguments.work, {arguments.checked});
  const Inputs inputs = open_inputs(input.names, input.options);
  const auto* const selection = std::get_if<Selection>(&inputs);
  const bool several = selection == nullptr || selection->several;
  if (selection != nullptr && selection->tensors.empty()) {
    throw Error(concat(printable(selection->name), ": has no tensors"));
  }
  Checking checking(arguments, output_word(arguments, inputs));
  Outputs none;
  const int status = for_each_tensor(
      inputs, none, arguments,
      look_at([&](const TensorInfo& x, const InputName& name) { checking.plan(x, name); },
              [&](OpenedTensor& tensor, const InputName& name, TensorWork& work) {
                checking.run(tensor, name, work);
              }));
  return std::max(status, checking.report(several));
}

}  // namespace lnorm::app
