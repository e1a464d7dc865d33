#include "lnorm/pipeline/grad.hpp"

#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "companions.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

// The files that get gradients, in the order of their names.
std::vector<OutputName> names_of(const Arguments& arguments) {
  std::vector<OutputName> names;
  for (const auto& [result, path] : arguments.results) {
    const ResultRow& row = result_row(result);
    const std::string_view own = result == Result::dx ? "" : row.name;
    names.push_back({std::string(row.option), path, std::string(own), true});
  }
  if (arguments.output.name) names.front().tensor = *arguments.output.name;
  return names;
}

class Gradients {
 public:
  explicit Gradients(const Arguments& arguments)
      : arguments_(arguments),
        backend_(find_backend(arguments.normalization.kernel)),
        requested_{has(Result::dx), has(Result::dweight), has(Result::dbias)},
        companions_(arguments),
        outputs_(names_of(arguments), arguments) {}

  Outputs& outputs() noexcept { return outputs_; }

  // What each output gets of x. Throws Error if the tensors do not fit together.
  std::vector<TensorInfo> results(const TensorInfo& x, const InputName& name) {
    const GradPlan plan = check(x, name);
    std::vector<TensorInfo> results(arguments_.results.size(), parameters(plan.rows));
    if (requested_.dx) results.front() = plan.rows.result();
    return results;
  }

  void run(OpenedTensor& input, const InputName& name, TensorWork& work) {
    const GradPlan plan = check(input.source->info(), name);
    const auto x = companions_.add_residual(std::move(input.source), plan.rows.out, work.threads());
    companions_.affine(plan.rows);
    const GradSources sources = companions_.open_backward(*x, x->info());
    std::size_t next = 0;
    const auto sink_of = [&](Result result) {
      return has(result) ? &outputs_.sink(next++) : nullptr;
    };
    GradSinks sinks;
    sinks.dx = sink_of(Result::dx);
    sinks.dweight = sink_of(Result::dweight);
    sinks.dbias = sink_of(Result::dbias);
    const bool takes_parts =
        can_distribute(sources, plan) &&
        (sinks.dx == nullptr || can_distribute(*sinks.dx, plan.rows.route.out));
    run_grad(sources, plan, backend_, companions_.weight(), parameters(plan.rows), sinks,
             work.begin(plan.rows, {uses_temporary_file(plan, sources, sinks.dx), takes_parts},
                        x->info(), backend_.name));
    companions_.finish();
  }

 private:
  bool has(Result result) const { return arguments_.results.contains(result); }

  TensorInfo parameters(const Plan& plan) const {
    return parameter_gradient(plan, companions_.info(TensorRole::weight),
                              arguments_.parameter_dtype);
  }

  GradPlan check(const TensorInfo& x, const InputName& name) {
    GradPlan plan =
        make_grad_plan(companions_.gradient_inputs(x, name, true), arguments_.normalization.options,
                       output_dtype(x.dtype, arguments_.output.dtype), requested_);
    companions_.check_affine(plan.rows, x, name);
    return plan;
  }

  static bool uses_temporary_file(const GradPlan& plan, const GradSources& sources,
                                  const TensorSink* dx) {
    const auto detours = [](const IoPath& io_path, const auto* tensor) {
      return tensor != nullptr && io_path.uses_temporary_file(tensor->has_random_access());
    };
    const Route& route = plan.rows.route;
    return detours(route.in, &sources.x) || detours(plan.dy, &sources.dy) ||
           detours(plan.mean, sources.mean) || detours(plan.rstd, sources.rstd) ||
           detours(route.out, dx) || (dx != nullptr && dx->needs_prescan());
  }

  const Arguments& arguments_;
  const Backend& backend_;
  RequestedGradients requested_;
  Companions companions_;
  Outputs outputs_;
};

// Each line would need a dy of its own.
void refuse_lines(const Inputs& inputs, const std::string& word) {
  if (!std::holds_alternative<TensorLines>(inputs)) return;
  const bool has_member = word.find(':') != word.npos;
  throw Error("grad takes a tensor that goes with a dy, found JSON Lines",
              has_member ? "" : concat("name one: ", shell_word(word + ":1")));
}

}  // namespace

int grad(const Arguments& arguments) {
  Gradients gradients(arguments);
  const Inputs inputs = open_inputs(arguments);
  refuse_lines(inputs, arguments.input.names.front());
  check_named(inputs);
  return work_on_each(inputs, gradients.outputs(), arguments, gradients);
}

}  // namespace lnorm::app
