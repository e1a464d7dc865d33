#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "companions.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/long_rows.hpp"
#include "lnorm/pipeline/row_writer.hpp"
#include "lnorm/pipeline/run.hpp"
#include "lnorm/pipeline/shared_scales.hpp"
#include "options.hpp"
#include "quantization.hpp"

namespace lnorm::app {

namespace {

// The numbers of rows that an output other than the result gets.
using Column = std::span<const double> RowBlock::*;

class Normalization {
 public:
  explicit Normalization(const Arguments& arguments)
      : arguments_(arguments),
        backend_(find_backend(options().kernel)),
        companions_(arguments),
        outputs_(output_names(), arguments) {}

  Outputs& outputs() noexcept { return outputs_; }

  // What each output gets of x. Throws Error if x cannot be normalized so.
  std::vector<TensorInfo> results(const TensorInfo& x, const InputName& name) {
    const Plan plan = this->plan(x, name);
    std::vector<TensorInfo> results{plan.result()};
    for (const auto& [result, path] : arguments_.results) {
      TensorInfo& info =
          results.emplace_back(TensorInfo{"", DType::float64, plan.row_shape(arguments_.keepdim)});
      if (result == Result::sum) info = plan.sum();
      if (result == Result::scale) {
        info.dtype = arguments_.quantization.scale_dtype;
        info.shape = plan.scale_shape(arguments_.keepdim);
      }
    }
    return results;
  }

  void run(OpenedTensor& tensor, const InputName& name, TensorWork& work) {
    const Plan plan = this->plan(tensor.source->info(), name);
    const Affine& affine = companions_.affine(plan);
    auto source = companions_.add_residual(std::move(tensor.source), plan.rounding, work.threads());
    if (plan.shared_scales > 0) source = with_random_access(std::move(source));
    std::vector<std::unique_ptr<RowWriter>> writers;
    std::vector<RowObserver*> observers;
    std::optional<SumWriter> sum;
    for (const auto& [result, path] : arguments_.results) {
      TensorSink& sink = sink_of(result);
      if (result == Result::sum) {
        sum.emplace(sink, plan, work.threads());
      } else if (result != Result::scale) {
        writers.push_back(std::make_unique<RowWriter>(sink, plan, column_of(result)));
      } else if (plan.shared_scales == 0) {
        const DType dtype = arguments_.quantization.scale_dtype;
        writers.push_back(std::make_unique<RowWriter>(sink, plan, dtype));
      }
    }
    observers.reserve(writers.size() + 1);  // one more for the sum
    for (const auto& writer : writers) observers.push_back(writer.get());
    TensorSink& sink = outputs_.sink(0);
    const bool others_take_parts =
        (!sum || sum->takes_parts()) &&
        (plan.route.in_parts || std::all_of(observers.begin(), observers.end(),
                                            [](const auto* o) { return o->takes_parts(); }));
    const RunOptions options = work.begin(plan, *source, &sink, backend_.name, others_take_parts);
    if (plan.route.in_parts) {
      run_long_rows(*source, plan, backend_, affine, observers, sink, options,
                    sum ? &*sum : nullptr);
    } else {
      const GivenStatistics* const given = companions_.given(plan);
      if (sum) observers.push_back(&*sum);
      if (arguments_.quantization) {
        quantize(*source, plan, given, affine, observers, sink, options);
      } else {
        lnorm::run(*source, plan, normalization(backend_, given, affine, plan.formula), observers,
                   &sink, options);
      }
    }
    companions_.finish();
  }

 private:
  bool has(Result result) const { return arguments_.results.contains(result); }

  // y is the first.
  TensorSink& sink_of(Result result) {
    const auto& all = arguments_.results;
    return outputs_.sink(1 +
                         static_cast<std::size_t>(std::distance(all.begin(), all.find(result))));
  }

  static Column column_of(Result result) {
    return result == Result::mean   ? &RowBlock::mean
           : result == Result::rstd ? &RowBlock::rstd
                                    : &RowBlock::variance;
  }

  void quantize(TensorSource& source, const Plan& plan, const GivenStatistics* given,
                const Affine& affine, std::span<RowObserver* const> observers, TensorSink& sink,
                const RunOptions& options) {
    const Quantization quantization = quantization_of(arguments_.quantization, plan);
    const AffineTerm* scales = companions_.given_scale(plan);
    AffineTerm shared;
    if (plan.shared_scales > 0) {
      const RowQuantizer first(backend_, given, affine, plan.formula, quantization);
      const std::vector<double> found = shared_scales(
          source, plan, first, quantization, {.threads = options.threads, .ranks = options.ranks});
      scales = &(shared = AffineTerm(found, {}));
      if (has(Result::scale)) {
        write_numbers(in_tensor_order(found, plan.scales),
                      {"", quantization.scale_dtype, plan.scale_shape(true)},
                      sink_of(Result::scale), options);
      }
    }
    const RowQuantizer quantizer(backend_, given, affine, plan.formula, quantization, scales,
                                 plan.shared_scales > 0 ? plan.scales : plan.affine);
    lnorm::run(source, plan, lnorm::quantization(quantizer), observers, &sink, options);
  }

  const NormalizationArguments& options() const noexcept { return arguments_.normalization; }

  std::vector<OutputName> output_names() const {
    std::vector<OutputName> names{{"-o", arguments_.output.path, "", true}};
    for (const auto& [result, path] : arguments_.results) {
      const ResultRow& row = result_row(result);
      names.push_back({std::string(row.option), path, std::string(row.name)});
    }
    return names;
  }

  Plan plan(const TensorInfo& x, const InputName& name) {
    const bool given = companions_.are_given();
    RowNeeds needs{.whole = given, .in_tiles = !has(Result::sum), .given = given};
    if (arguments_.quantization) needs = quantized_rows(arguments_.quantization);
    Plan plan = companions_.plan(x, name, needs);
    companions_.check(Companions::kGiven, x, name);
    plan.wants_variance = has(Result::variance);
    plan.wants_mean_and_rstd = plan.wants_variance || has(Result::mean) || has(Result::rstd);
    plan.saturates = arguments_.output.saturates;
    check_float8(arguments_.output, plan.out);
    if (has(Result::sum) && is_float8(plan.rounding)) {
      throw Error(concat("--save-sum is in the output dtype, found ", lnorm::name(plan.rounding),
                         ", expected ", dtype_list(is_larger_float)));
    }
    if (plan.wants_mean_and_rstd) check_empty_rows(plan, x.name, "saved statistics of");
    companions_.check_affine(plan, x, name);
    return plan;
  }

  const Arguments& arguments_;
  const Backend& backend_;
  Companions companions_;
  Outputs outputs_;
};

}  // namespace

int apply(const Arguments& arguments) {
  const Norm& norm = arguments.normalization.options.formula.norm();
  if (!norm.has_mean && arguments.results.contains(Result::mean)) {
    throw Error(concat(option_of(arguments.normalization.options.formula),
                       " subtracts no mean, so that there is none for --save-mean"));
  }
  check_quantization(arguments);
  Normalization normalization(arguments);
  const Inputs inputs = open_inputs(arguments);
  check_named(inputs);
  return work_on_each(inputs, normalization.outputs(), arguments, normalization);
}

}  // namespace lnorm::app
