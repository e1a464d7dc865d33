#include "lnorm/pipeline/mutants.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "affine_inputs.hpp"
#include "auxiliary_input.hpp"
#include "check_given.hpp"
#include "commands.hpp"
#include "compare_criteria.hpp"
#include "each_tensor.hpp"
#include "kernel_choice.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/manifest.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/mutant_gradients.hpp"
#include "normalization_text.hpp"
#include "print_error.hpp"
#include "residual_input.hpp"
#include "saved_report.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

// Inputs with the same words for weight, bias and dy: those of the command line, or of a case.
struct Batch {
  Arguments arguments;
  std::string name;  // of a case; empty: each input has its own
};

std::vector<Batch> batches_of(const Arguments& arguments) {
  std::vector<Batch> batches;
  const bool is_alone = arguments.input.names.size() == 1;
  for (const std::string& word : arguments.input.names) {
    if (const auto of = inputs_of_manifest(word)) {
      throw Error(concat(printable(word), ": is a manifest, expected its folder or file"),
                  concat("lnorm mutants ", shell_word(*of)));
    }
    const bool is_in_memory = arguments.input.options.files->contains(word);
    const auto manifest = is_in_memory ? std::nullopt : read_manifest(word);
    if (!manifest) {
      if (batches.empty() || !batches.back().name.empty()) {
        batches.push_back({arguments, ""});
        batches.back().arguments.input.names.clear();
      }
      batches.back().arguments.input.names.push_back(word);
      continue;
    }
    const NormalizationArguments& given = arguments.normalization;
    for (const auto& [option, is_given] :
         {std::pair{"--weight", given.weight.has_value()},
          std::pair{"--bias", given.bias.has_value()}, std::pair{"--dy", !arguments.dy.empty()}}) {
      if (!is_given) continue;
      throw Error(concat(option, ": ", printable(manifest_path(word)),
                         " says weight, bias and dy of its cases"));
    }
    const std::string options = normalization_text(given.options);
    if (!manifest->options.empty() && manifest->options != options) {
      print_note(concat(printable(manifest_path(word)), ": the inputs were made with ",
                        printable(manifest->options), ", found ", options));
    }
    for (const InputCase& one : manifest->cases) {
      Batch& batch = batches.emplace_back(
          Batch{arguments, is_alone ? one.name : concat(word, ": ", one.name)});
      batch.arguments.input.names = {one.x};
      batch.arguments.normalization.weight = one.weight;
      batch.arguments.normalization.bias = one.bias;
      batch.arguments.dy = one.dy.value_or("");
    }
  }
  return batches;
}

// Tries wrong kernels on the inputs of a batch.
class Trying {
 public:
  Trying(const Batch& batch, const ChooseKernel& choose, MutantReport& report)
      : batch_(batch),
        arguments_(batch.arguments),
        backend_(find_backend(arguments_.normalization.kernel)),
        choose_(choose),
        report_(report),
        residual_(arguments_.normalization, arguments_.input.options),
        dy_(dy_of(arguments_)),
        affine_inputs_(arguments_.normalization, arguments_.input.options, residual_, 1,
                       dy_ ? &*dy_ : nullptr) {}

  void plan(const TensorInfo& x, const InputName& name) {
    affine_inputs_.check(make_plan(x, name), x, name);
    if (dy_) make_grad_plan(x, name);
  }

  void run(OpenedTensor& tensor, const InputName& name, TensorWork& work) {
    const TensorInfo x = tensor.source->info();
    const Plan plan = make_plan(x, name);
    const Affine& affine = affine_inputs_.of(plan, x, name);
    const auto given = std::move(tensor.source);
    // All of it is read again, row by row.
    const auto alone = with_random_access(*given);
    auto source = residual_.add_to(std::make_unique<LentSource>(*alone), plan.out, work.threads());
    if (!source->has_random_access()) source = spooled(*source);
    const MutantInputs inputs{.x = *source,
                              .alone = arguments_.normalization.residual ? alone.get() : nullptr,
                              .weight = affine_inputs_.weight(),
                              .bias = affine_inputs_.bias(),
                              .affine = affine};
    const MutantOptions options{
        .zero_centered_weight = arguments_.normalization.options.zero_centered_weight,
        .rounding = arguments_.normalization.options.rounding,
        .choose = choose_,
        .criteria = criteria_of(arguments_, nullptr, plan.out, plan.out)};
    const RunOptions run_options = work.begin(plan, *source, nullptr, backend_.name, false);
    auto tried = try_mutants(inputs, plan, backend_, options, run_options);
    if (dy_) {
      auto backward = try_gradients(*source, x, name, run_options);
      std::move(backward.begin(), backward.end(), std::back_inserter(tried));
    }
    work.end();
    source->finish();
    given->finish();
    residual_.finish();
    report_.add(batch_.name.empty() ? name.title : batch_.name, tried);
  }

 private:
  static std::unique_ptr<TensorSource> with_random_access(TensorSource& source) {
    if (source.has_random_access()) return std::make_unique<LentSource>(source);
    return spooled(source);
  }

  static std::optional<AuxiliaryInput> dy_of(const Arguments& arguments) {
    if (arguments.dy.empty()) return {};
    return AuxiliaryInput::at_position(1, "--dy", arguments.dy, arguments.input);
  }

  std::vector<TriedMutant> try_gradients(TensorSource& source, const TensorInfo& x,
                                         const InputName& name, const RunOptions& run_options) {
    const GradPlan plan = make_grad_plan(x, name);
    affine_inputs_.of(plan.rows, x, name);  // each number once
    const auto given = dy_->open();
    const auto dy = rows_beside(x, with_random_access(*given));
    const TensorInfo parameters =
        parameter_gradient(plan.rows, affine_inputs_.weight_info(), arguments_.output.dtype);
    const auto criteria = [&](DType dtype) {
      return criteria_of(arguments_, nullptr, dtype, dtype);
    };
    auto tried = try_gradient_mutants(
        {.sources = {source, *dy},
         .weight = affine_inputs_.weight(),
         .bias = affine_inputs_.bias(),
         .parameters = parameters},
        plan, backend_,
        {.zero_centered_weight = arguments_.normalization.options.zero_centered_weight,
         .choose = choose_,
         .criteria = criteria(plan.rows.out),
         .parameter_criteria = criteria(parameters.dtype)},
        {run_options.threads, {}, run_options.ranks});
    dy_->finish();
    return tried;
  }

  GradPlan make_grad_plan(const TensorInfo& x, const InputName& name) {
    check_auxiliary_inputs(x, name, [&] {
      dy_->find(name);
      if (!name.several || !dy_->is_read_once()) return;
      throw Error(concat(dy_->info().name, " can be read for one input alone, found several"));
    });
    const DType out = output_dtype(x.dtype, arguments_.output.dtype);
    return lnorm::make_grad_plan({residual_.check(x, out, name), elements_beside(x, dy_->info())},
                                 arguments_.normalization.options, out, {},
                                 {.whole = true, .ordered = true});
  }

  Plan make_plan(const TensorInfo& x, const InputName& name) {
    if (element_count(x.shape) == 0) {
      throw Error(concat(printable(x.name), ": has no elements to try wrong kernels on"));
    }
    const DType out = output_dtype(x.dtype, arguments_.output.dtype);
    return lnorm::make_plan(residual_.check(x, out, name), arguments_.normalization.options, out,
                            {.whole = true, .ordered = true});
  }

  const Batch& batch_;
  const Arguments& arguments_;
  const Backend& backend_;
  const ChooseKernel& choose_;
  MutantReport& report_;
  ResidualInput residual_;
  std::optional<AuxiliaryInput> dy_;
  AffineInputs affine_inputs_;
};

int try_batch(const Batch& batch, const ChooseKernel& choose, MutantReport& report) {
  const Arguments& arguments = batch.arguments;
  check_affine_options(arguments.normalization);
  std::vector<std::string> others;
  if (!arguments.dy.empty()) others.push_back(arguments.dy);
  check_inputs(arguments.input, arguments.normalization, arguments.work, others);
  const Inputs inputs = open_inputs(arguments.input.names, arguments.input.options);
  Trying trying(batch, choose, report);
  Outputs none;
  return for_each_tensor(
      inputs, none, arguments,
      look_at([&](const TensorInfo& x, const InputName& name) { trying.plan(x, name); },
              [&](OpenedTensor& tensor, const InputName& name, TensorWork& work) {
                trying.run(tensor, name, work);
              }));
}

Style report_style(const Arguments& arguments) {
  Style style = output_style(arguments.color, Style::kAnyWidth);
  style.width = arguments.linewidth.value_or(style.width);
  return style;
}

int list_kernels(const Arguments& arguments, const ChooseKernel& choose) {
  print_report([&](ByteSink& out) {
    arguments.report == Report::json
        ? write_wrong_kernels_json(choose, out)
        : write_wrong_kernels_text(choose, report_style(arguments), out);
  });
  return 0;
}

}  // namespace

int mutants(const Arguments& arguments) {
  const ChooseKernel choose = kernel_choice(arguments);
  if (arguments.lists_kernels) return list_kernels(arguments, choose);
  MutantReport report;
  int status = 0;
  for (const Batch& batch : batches_of(arguments)) {
    try {
      status = std::max(status, try_batch(batch, choose, report));
    } catch (const Error& error) {
      if (!arguments.input.keep_going || batch.name.empty()) throw;
      status = print_error(error);
    }
  }
  if (report.inputs().empty()) {
    if (status != 0) return status;
    throw Error(concat(printable(arguments.input.names.front()), ": has no tensors"));
  }
  save_report(arguments.save_json, [&](ByteSink& out) { write_json(report, out); });
  save_report(arguments.save_junit, [&](ByteSink& out) { write_junit(report, out); });
  if (!arguments.quiet) {
    print_report([&](ByteSink& out) {
      arguments.report == Report::json ? write_json(report, out)
                                       : write_text(report, report_style(arguments), out);
    });
  }
  if (report.tried() == 0) {
    throw Error(
        report.mutants().empty()
            ? "no wrong kernel is tried: none of the chosen ones applies to these inputs"
            : "every wrong kernel that is chosen is equivalent here, by formula and options",
        arguments.dy.empty()
            ? "--dy tries those of the backward pass"
            : "other --kernels, --weight and --bias, or longer rows have some to try");
  }
  return std::max(status, report.survivors().empty() ? 0 : 1);
}

}  // namespace lnorm::app
