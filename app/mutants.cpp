#include "lnorm/pipeline/mutants.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check_given.hpp"
#include "commands.hpp"
#include "companions.hpp"
#include "judging.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/manifest.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "options.hpp"
#include "quantization.hpp"
#include "report_output.hpp"
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
    for (const TensorRole role : {TensorRole::weight, TensorRole::bias, TensorRole::dy}) {
      if (!arguments.tensors.contains(role)) continue;
      throw Error(concat(role_row(role).option, ": ", printable(manifest_path(word)),
                         " says weight, bias and dy of its cases"));
    }
    const std::string options = normalization_text(arguments.normalization.options);
    if (!manifest->options.empty() && manifest->options != options) {
      print_note(concat(printable(manifest_path(word)), ": the inputs were made with ",
                        printable(manifest->options), ", found ", options));
    }
    for (const InputCase& one : manifest->cases) {
      Batch& batch = batches.emplace_back(
          Batch{arguments, is_alone ? one.name : concat(word, ": ", one.name)});
      batch.arguments.input.names = {one.x};
      TensorWords& tensors = batch.arguments.tensors;
      if (one.weight) tensors[TensorRole::weight] = *one.weight;
      if (one.bias) tensors[TensorRole::bias] = *one.bias;
      if (one.dy && !arguments.quantization) tensors[TensorRole::dy] = *one.dy;
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
        companions_(arguments_) {}

  Plan check(const TensorInfo& x, const InputName& name) {
    if (element_count(x.shape) == 0) {
      throw Error(concat(printable(x.name), ": has no elements to try wrong kernels on"));
    }
    Plan plan = companions_.plan(x, name, observed_rows(arguments_.quantization));
    companions_.check_affine(plan, x, name);
    if (has_dy()) make_grad_plan(x, name);
    return plan;
  }

  void run(OpenedTensor& tensor, const InputName& name, TensorWork& work) {
    const TensorInfo x = tensor.source->info();
    constexpr std::int64_t kFiveSeconds = std::int64_t{1} << 21;  // of elements, or so
    if (element_count(x.shape) > kFiveSeconds && !arguments_.input.rows && !arguments_.quiet) {
      print_note(
          concat(printable(x.name), ": this takes a while, and few rows show as much: --rows :64"));
    }
    const Plan plan = check(x, name);
    const Affine& affine = companions_.affine(plan);
    const auto given = std::move(tensor.source);
    // All of it is read again, row by row.
    const auto alone = with_random_access(std::make_unique<LentSource>(*given));
    const auto source = with_random_access(companions_.add_residual(
        std::make_unique<LentSource>(*alone), plan.rounding, work.threads()));
    const MutantInputs inputs{
        .x = *source,
        .alone = companions_.has(TensorRole::residual) ? alone.get() : nullptr,
        .weight = companions_.weight(),
        .bias = companions_.bias(),
        .affine = affine};
    const MutantOptions options{
        .zero_centered_weight = arguments_.normalization.options.zero_centered_weight,
        .rounding = arguments_.normalization.options.rounding,
        .choose = choose_,
        .criteria = criteria_of(arguments_, nullptr, plan.out, plan.out)};
    const RunOptions run_options = work.begin(plan, *source, nullptr, backend_.name, false);
    auto tried = arguments_.quantization
                     ? try_quantized(inputs, plan, options, run_options)
                     : try_mutants(inputs, plan, backend_, options, run_options);
    if (has_dy()) {
      auto backward = try_gradients(*source, x, name, run_options);
      std::move(backward.begin(), backward.end(), std::back_inserter(tried));
    }
    work.end();
    source->finish();
    given->finish();
    companions_.finish();
    report_.add(batch_.name.empty() ? name.title : batch_.name, tried);
  }

 private:
  std::vector<TriedMutant> try_quantized(const MutantInputs& inputs, const Plan& plan,
                                         const MutantOptions& options,
                                         const RunOptions& run_options) {
    const Quantization quantization = quantization_of(arguments_.quantization, plan);
    return try_quantized_mutants(
        inputs, {.quantization = quantization, .given_scale = companions_.given_scale(plan)}, plan,
        backend_, options, run_options);
  }

  bool has_dy() const { return companions_.has(TensorRole::dy); }

  std::vector<TriedMutant> try_gradients(TensorSource& source, const TensorInfo& x,
                                         const InputName& name, const RunOptions& run_options) {
    const GradPlan plan = make_grad_plan(x, name);
    companions_.affine(plan.rows);  // each number once
    const TensorInfo parameters = parameter_gradient(
        plan.rows, companions_.info(TensorRole::weight), arguments_.output.dtype);
    const auto criteria = [&](DType dtype) {
      return criteria_of(arguments_, nullptr, dtype, dtype);
    };
    return try_gradient_mutants(
        {.sources = companions_.open_backward(source, x, true),
         .weight = companions_.weight(),
         .bias = companions_.bias(),
         .parameters = parameters},
        plan, backend_,
        {.zero_centered_weight = arguments_.normalization.options.zero_centered_weight,
         .choose = choose_,
         .criteria = criteria(plan.rows.out),
         .parameter_criteria = criteria(parameters.dtype)},
        {run_options.threads, {}, run_options.ranks});
  }

  GradPlan make_grad_plan(const TensorInfo& x, const InputName& name) {
    return lnorm::make_grad_plan(companions_.gradient_inputs(x, name, true),
                                 arguments_.normalization.options,
                                 output_dtype(x.dtype, arguments_.output.dtype), {}, kWholeRows);
  }

  const Batch& batch_;
  const Arguments& arguments_;
  const Backend& backend_;
  const ChooseKernel& choose_;
  MutantReport& report_;
  Companions companions_;
};

int try_batch(const Batch& batch, const ChooseKernel& choose, MutantReport& report) {
  const Arguments& arguments = batch.arguments;
  check_affine_options(arguments);
  const Inputs inputs = open_inputs(arguments);
  Trying trying(batch, choose, report);
  return look_at_each(inputs, arguments, trying);
}

int list_kernels(const Arguments& arguments, const ChooseKernel& choose) {
  print_report(arguments, [&](ByteSink& out) {
    arguments.report == Report::json
        ? write_wrong_kernels_json(choose, bool(arguments.quantization), out)
        : write_wrong_kernels_text(choose, bool(arguments.quantization), report_style(arguments),
                                   out);
  });
  return 0;
}

}  // namespace

int mutants(const Arguments& arguments) {
  const ChooseKernel choose = kernel_choice(arguments);
  if (arguments.lists_kernels) return list_kernels(arguments, choose);
  check_quantization(arguments);
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
  save_reports(arguments, report);
  print_report(arguments, [&](ByteSink& out) {
    arguments.report == Report::json ? write_json(report, out)
                                     : write_text(report, report_style(arguments), out);
  });
  if (report.tried() == 0) {
    throw Error(
        report.mutants().empty()
            ? "no wrong kernel is tried: none of the chosen ones applies to these inputs"
            : "every wrong kernel that is chosen is equivalent here, by formula and options",
        !arguments.tensors.contains(TensorRole::dy) && !arguments.quantization
            ? "--dy tries those of the backward pass"
            : "other --kernels, --weight and --bias, or longer rows have some to try");
  }
  return std::max(status, report.survivors().empty() ? 0 : 1);
}

}  // namespace lnorm::app
