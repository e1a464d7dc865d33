#include "lnorm/pipeline/grad.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "affine_inputs.hpp"
#include "auxiliary_input.hpp"
#include "commands.hpp"
#include "each_tensor.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "residual_input.hpp"

namespace lnorm::app {

namespace {

// The files that get gradients, in the order of their names.
std::vector<OutputName> names_of(const Arguments& arguments) {
  std::vector<OutputName> names;
  if (arguments.dx) names.push_back({"--dx", *arguments.dx, "", true});
  if (arguments.dweight) names.push_back({"--dweight", *arguments.dweight, "dweight", true});
  if (arguments.dbias) names.push_back({"--dbias", *arguments.dbias, "dbias", true});
  if (arguments.output.name) names.front().tensor = *arguments.output.name;
  return names;
}

class Gradients {
 public:
  explicit Gradients(const Arguments& arguments)
      : arguments_(arguments),
        backend_(find_backend(arguments.normalization.kernel)),
        requested_{arguments.dx.has_value(), arguments.dweight.has_value(),
                   arguments.dbias.has_value()},
        residual_(arguments.normalization, arguments.input.options),
        dy_(AuxiliaryInput::at_position(1, "--dy", arguments.dy, arguments.input)),
        weight_("--weight", arguments.normalization.weight, arguments.input.options,
                arguments.normalization.options.zero_centered_weight) {
    const NormalizationArguments& given = arguments.normalization;
    const auto take = [&](auto& input, const char* option, const auto& word) {
      if (word) input.emplace(option, *word, arguments.input.options, parse_literal);
    };
    take(mean_, "--mean", given.mean);
    take(spread_, given.rstd ? "--rstd" : "--variance", given.rstd ? given.rstd : given.variance);
  }

  // What each output gets of x. Throws Error if the tensors do not fit together.
  std::vector<TensorInfo> results(const TensorInfo& x, const InputName& name) {
    const GradPlan plan = check(x, name);
    std::vector<TensorInfo> results;
    if (requested_.dx) results.push_back(plan.rows.result());
    results.resize(results.size() + (requested_.dweight ? 1 : 0) + (requested_.dbias ? 1 : 0),
                   parameters(plan.rows));
    return results;
  }

  void find(OpenedTensor& input, const InputName& name, Outputs& outputs, TensorWork& work) {
    const GradPlan plan = check(input.source->info(), name);
    const auto x = residual_.add_to(std::move(input.source), plan.rows.out, work.threads());
    if (weight_.is_unread()) weight_term_ = weight_.read();
    const AffineTerm weight = weight_term_.laid_out(plan.rows.affine);
    const auto open = [&](AuxiliaryInput& auxiliary) {
      return rows_beside(x->info(), auxiliary.open());
    };
    const auto dy = open(dy_);
    const auto mean = mean_ ? open(*mean_) : nullptr;
    const auto spread = spread_ ? open(*spread_) : nullptr;
    const GradSources sources{*x, *dy, mean.get(), spread.get(),
                              arguments_.normalization.variance.has_value()};
    std::size_t next = 0;
    const auto sink_if = [&](bool is_wanted) {
      return is_wanted ? &outputs.sink(next++) : nullptr;
    };
    GradSinks sinks;
    sinks.dx = sink_if(requested_.dx);
    sinks.dweight = sink_if(requested_.dweight);
    sinks.dbias = sink_if(requested_.dbias);
    const bool takes_parts =
        can_distribute(sources, plan) &&
        (sinks.dx == nullptr || can_distribute(*sinks.dx, plan.rows.route.out));
    run_grad(sources, plan, backend_, weight, parameters(plan.rows), sinks,
             work.begin(plan.rows, {uses_temporary_file(plan, sources, sinks.dx), takes_parts},
                        x->info(), backend_.name));
    residual_.finish();
    dy_.finish();
    if (mean_) mean_->finish();
    if (spread_) spread_->finish();
  }

 private:
  std::optional<DType> as() const { return arguments_.input.options.as; }

  TensorInfo parameters(const Plan& plan) const {
    return parameter_gradient(plan, weight_.info(), arguments_.parameter_dtype);
  }

  GradPlan check(const TensorInfo& x, const InputName& name) {
    check_auxiliary_inputs(x, name, [&] {
      for (AuxiliaryInput* const auxiliary : auxiliarys()) {
        auxiliary->find(name);
        if (name.several && auxiliary->is_read_once()) {
          throw Error(
              concat(auxiliary->info().name, " can be read for one input alone, found several"));
        }
      }
    });
    const DType dtype = output_dtype(x.dtype, arguments_.output.dtype);
    GradientInputs inputs{residual_.check(x, dtype, name), elements_beside(x, dy_.info())};
    if (mean_) inputs.mean = row_numbers_beside(x, mean_->info());
    if (spread_) inputs.rstd = row_numbers_beside(x, spread_->info());
    GradPlan plan = make_grad_plan(inputs, arguments_.normalization.options, dtype, requested_);
    check_auxiliary_inputs(x, name, [&] { weight_.check(plan.rows, name); });
    check_as(x);
    return plan;
  }

  // Throws Error if --as is given, but is for none of the tensors.
  void check_as(const TensorInfo& x) {
    if (!as() || weight_.has_dtype(*as()) || residual_.has_dtype(*as())) return;
    for (const AuxiliaryInput* const auxiliary : auxiliarys()) {
      if (auxiliary->has_dtype(*as())) return;
    }
    app::check_as(as(), x);
  }

  std::vector<AuxiliaryInput*> auxiliarys() {
    std::vector<AuxiliaryInput*> given{&dy_};
    if (mean_) given.push_back(&*mean_);
    if (spread_) given.push_back(&*spread_);
    return given;
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
  ResidualInput residual_;
  AuxiliaryInput dy_;
  std::optional<AuxiliaryInput> mean_;
  std::optional<AuxiliaryInput> spread_;  // --rstd or --variance
  AffineInput weight_;
  AffineTerm weight_term_;
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
  const InputArguments& input = arguments.input;
  std::vector<std::string> others{arguments.dy};
  check_inputs(input, arguments.normalization, arguments.work, others);
  Gradients gradients(arguments);
  Outputs outputs(names_of(arguments), arguments);
  const Inputs inputs = open_inputs(input.names, input.options);
  refuse_lines(inputs, input.names.front());
  check_named(inputs);
  return for_each_tensor(
      inputs, outputs, arguments,
      {[&](const TensorInfo& x, const InputName& name) { return gradients.results(x, name); },
       [&](OpenedTensor& tensor, const InputName& name, TensorWork& work) {
         gradients.find(tensor, name, outputs, work);
       },
       Deal::by_size});
}

}  // namespace lnorm::app
