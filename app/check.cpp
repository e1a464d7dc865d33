#include "lnorm/pipeline/check.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "affine_inputs.hpp"
#include "auxiliary_input.hpp"
#include "check_details.hpp"
#include "commands.hpp"
#include "compare_criteria.hpp"
#include "compare_sets.hpp"
#include "each_tensor.hpp"
#include "given_inputs.hpp"
#include "kernel_choice.hpp"
#include "lnorm/core/axes.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/check_gradients.hpp"
#include "lnorm/report/page/sections.hpp"
#include "mask_input.hpp"
#include "page_output.hpp"
#include "residual_input.hpp"
#include "saved_report.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

// OUTPUT of several inputs is found by their names, unless it says how itself.
std::string output_word(const Arguments& arguments, const Inputs& inputs) {
  const std::string& word = arguments.checked;
  const auto* const selection = std::get_if<Selection>(&inputs);
  if (word.empty() || selection == nullptr || !selection->several || has_placeholder(word)) {
    return word;
  }
  return concat(word.substr(0, word.find(":*")), ":{}");
}

// Leaves those of --only, without those of --skip. Throws Error for a pattern that none matches.
void choose_tensors(const PairingRules& rules, Selection& selection) {
  if (rules.only.empty() && rules.skip.empty()) return;
  const std::string_view option = rules.only.empty() ? rules.called.skip : rules.called.only;
  if (!selection.several) {
    throw Error(concat(option, " has no effect: there is one tensor"));
  }
  std::vector<Selected>& tensors = selection.tensors;
  const std::vector<bool> are_chosen = chosen_by_name(named(selection), rules);
  std::vector<Selected> left;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (are_chosen[i]) left.push_back(std::move(tensors[i]));
  }
  tensors = std::move(left);
  if (!tensors.empty()) return;
  throw Error(concat(option, " leaves no tensor of ", printable(selection.name)));
}

// For options that show more than a line of a tensor.
void refuse_details(const Arguments& arguments, bool several) {
  const std::string_view option = arguments.worst       ? "--worst"
                                  : arguments.histogram ? "--histogram"
                                  : arguments.rows_out  ? "--rows-out"
                                                        : "";
  if (!several || option.empty()) return;
  if (!arguments.dy.empty() || arguments.save_mean || arguments.save_rstd) {
    throw Error(
        concat(option, " shows OUTPUT alone, found gradients or statistics to judge as well"));
  }
  throw Error(concat(option, " has no effect: several tensors have a line each"),
              "FILE:NAME judges one");
}

class Checking {
 public:
  Checking(const Arguments& arguments, const std::string& output)
      : arguments_(arguments),
        backend_(find_backend(arguments.normalization.kernel)),
        residual_(arguments.normalization, arguments.input.options),
        explains_(!arguments.quiet || arguments.save_json || arguments.save_junit ||
                  wants_details(arguments)),
        choose_(kernel_choice(arguments)),
        dy_(next_input("--dy", arguments.dy)),
        output_(next_input("OUTPUT", output)),
        dx_(next_input("--actual-dx", arguments.dx)),
        dweight_(next_input("--actual-dweight", arguments.dweight)),
        dbias_(next_input("--actual-dbias", arguments.dbias)),
        saved_mean_(next_input("--actual-mean", arguments.save_mean)),
        saved_rstd_(next_input("--actual-rstd", arguments.save_rstd)),
        affine_inputs_(arguments.normalization, arguments.input.options, residual_,
                       arguments.output.scale.value_or(1),
                       output_ ? &*output_
                       : dy_   ? &*dy_
                               : nullptr),
        given_(arguments.normalization, arguments.input.options),
        mask_(arguments) {
    if (dy_) {
      const NormalizationArguments& given = arguments.normalization;
      const auto open = [&](std::optional<AuxiliaryInput>& auxiliary, const std::string& option,
                            const std::optional<std::string>& word) {
        if (word) auxiliary.emplace(option, *word, arguments.input.options, parse_literal);
      };
      open(mean_, "--mean", given.mean);
      open(spread_, given.rstd ? "--rstd" : "--variance", given.rstd ? given.rstd : given.variance);
    }
    if (has_page() && arguments.work.ranks->is_first()) {
      page_output_.emplace("--page", arguments.page);
    }
  }

  void plan(const TensorInfo& x, const InputName& name) {
    affine_inputs_.check(make_plan(x, name), x, name);
    if (output_) given_.check(x, name);
    mask_.check(x, name);
    if (dy_) make_grad_plan(x, name);
  }

  void run(OpenedTensor& tensor, const InputName& name, TensorWork& work) {
    const TensorInfo x = tensor.source->info();
    const Plan plan = make_plan(x, name);
    const Affine& affine = affine_inputs_.of(plan, x, name);
    const auto alone = std::move(tensor.source);
    auto source = residual_.add_to(std::make_unique<LentSource>(*alone), plan.out, work.threads());
    // What is judged is read again, by rows.
    if (!source->has_random_access() && (explains_ || dy_)) source = spooled(*source);
    const RunOptions options = work.begin(plan, *source, nullptr, backend_.name, false);
    std::vector<NamedCheck> found;
    if (output_) {
      Check y = check_output(*source, *alone, x, name, plan, affine, mask_.of(x, name), options);
      std::vector<Check> saved = std::exchange(y.statistics, {});
      found.push_back({name.title, std::move(y)});
      add_parts(name, std::move(saved), found);
    }
    if (dy_) check_gradients(*source, x, name, options, found);
    work.end();
    source->finish();
    alone->finish();
    residual_.finish();
    if (!work.has_report()) return;
    for (NamedCheck& one : found) {
      if (has_page()) add_section(one);
    }
    std::move(found.begin(), found.end(), std::back_inserter(checks_));
  }

  // Writes all reports. Returns the exit status.
  int report(bool several) {
    if (!arguments_.work.ranks->is_first()) return 0;
    save_report(arguments_.save_json, [&](ByteSink& out) { write_json_report(several, out); });
    save_report(arguments_.save_junit, [&](ByteSink& out) { write_junit(checks_, out); });
    save_report(arguments_.rows_out, [&](ByteSink& out) {
      write_rows_csv(checks_.front().check.details->failed_rows, out);
    });
    if (page_output_) {
      const std::string& output = arguments_.checked;
      page_output_->write(concat(output.empty() ? "gradients" : title_of(output),
                                 " and layer norm of ", title_of(arguments_.input.names.front())),
                          "lnorm check", sections_.take());
    }
    if (!arguments_.quiet) {
      print_report([&](ByteSink& out) {
        arguments_.report == Report::json ? write_json_report(several, out)
                                          : write_text_report(several, out);
      });
    }
    int status = 0;
    for (const NamedCheck& tensor : checks_) status = std::max(status, tensor.check.exit_status());
    return status;
  }

 private:
  // Of INPUT, --dy, then OUTPUT and the --actual-...; nothing where it is not given.
  std::optional<AuxiliaryInput> next_input(const std::string& option,
                                           const std::optional<std::string>& word) {
    if (!word || word->empty()) return {};
    return AuxiliaryInput::at_position(++position_, option, *word, arguments_.input);
  }

  // OUTPUT, or a gradient, with random access.
  std::unique_ptr<TensorSource> open(AuxiliaryInput& auxiliary) {
    auto tensor = auxiliary.open();
    return tensor->has_random_access() ? std::move(tensor) : spooled(*tensor);
  }

  Check check_output(TensorSource& source, TensorSource& alone, const TensorInfo& x,
                     const InputName& name, const Plan& plan, const Affine& affine,
                     const std::shared_ptr<const Mask>& mask, const RunOptions& options) {
    auto actual = rows_beside(x, open(*output_));
    const auto open_saved = [&](std::optional<AuxiliaryInput>& saved) {
      return saved ? rows_beside(x, open(*saved)) : std::unique_ptr<TensorSource>();
    };
    const auto mean = open_saved(saved_mean_);
    const auto rstd = open_saved(saved_rstd_);
    const NormalizationArguments& normalization = arguments_.normalization;
    const bool has_residual = normalization.residual.has_value();
    const auto residual = residual_.again(alone.info());
    const GivenStatistics* const given = given_.of(plan, x, name);
    const CheckInputs inputs{.x = source,
                             .actual = *actual,
                             .alone = has_residual && alone.has_random_access() ? &alone : nullptr,
                             .residual = residual.get(),
                             .is_sum = has_residual && !normalization.round_sum,
                             .weight = affine_inputs_.weight(),
                             .bias = affine_inputs_.bias(),
                             .affine = affine,
                             .given = given,
                             .mean = mean.get(),
                             .rstd = rstd.get(),
                             .mask = mask};
    Check found = lnorm::check(inputs, plan, backend_, check_options(plan.out), options);
    if (wants_details(arguments_)) {
      found.details = compare_with_exact(arguments_, source, *actual, plan, inputs, options);
    }
    actual->finish();
    for (auto* const read : {&output_, &saved_mean_, &saved_rstd_}) {
      if (*read) (*read)->finish();
    }
    return found;
  }

  // What is judged beside y, or in its place.
  static void add_parts(const InputName& name, std::vector<Check> parts,
                        std::vector<NamedCheck>& found) {
    for (Check& one : parts) {
      found.push_back(
          {name.several ? concat(name.title, ':', one.part) : one.part, std::move(one)});
    }
  }

  void check_gradients(TensorSource& source, const TensorInfo& x, const InputName& name,
                       const RunOptions& options, std::vector<NamedCheck>& found) {
    const GradPlan plan = make_grad_plan(x, name);
    affine_inputs_.of(plan.rows, x, name);  // each number once
    const auto open_if = [&](std::optional<AuxiliaryInput>& auxiliary, bool is_beside) {
      if (!auxiliary) return std::unique_ptr<TensorSource>();
      return is_beside ? rows_beside(x, open(*auxiliary)) : open(*auxiliary);
    };
    const auto dy = open_if(dy_, true);
    const auto mean = open_if(mean_, true);
    const auto spread = open_if(spread_, true);
    const auto dx = open_if(dx_, true);
    const auto dweight = open_if(dweight_, false);
    const auto dbias = open_if(dbias_, false);
    const NormalizationArguments& normalization = arguments_.normalization;
    const auto is_number = [](const auto& tensor) {
      return tensor && tensor->info().shape.empty();
    };
    const GradientCheckInputs inputs{
        .sources = {source, *dy, mean.get(), spread.get(), normalization.variance.has_value()},
        .dx = dx.get(),
        .dweight = dweight.get(),
        .dbias = dbias.get(),
        .is_sum = normalization.residual && !normalization.round_sum,
        .is_uniform = (is_number(dweight) || is_number(dbias)) && !x.shape.empty(),
        .weight = affine_inputs_.weight(),
        .bias = affine_inputs_.bias()};
    // The first of them says what the kernel computes in.
    const DType dtype = (dx ? dx : dweight ? dweight : dbias)->info().dtype;
    add_parts(name,
              lnorm::check_gradients(inputs, plan, backend_, check_options(dtype),
                                     {options.threads, {}, options.ranks}),
              found);
    for (AuxiliaryInput* const auxiliary : gradients()) auxiliary->finish();
  }

  // What the backward pass reads, and what is judged of it.
  std::vector<AuxiliaryInput*> gradients() {
    std::vector<AuxiliaryInput*> given;
    for (auto* const one : {&dy_, &mean_, &spread_, &dx_, &dweight_, &dbias_}) {
      if (*one) given.push_back(&**one);
    }
    return given;
  }

  GradPlan make_grad_plan(const TensorInfo& x, const InputName& name) {
    check_auxiliary_inputs(x, name, [&] {
      for (AuxiliaryInput* const auxiliary : gradients()) auxiliary->find(name);
    });
    GradientInputs inputs{residual_.check(x, output_dtype(x.dtype, {}), name),
                          elements_beside(x, dy_->info())};
    if (mean_) inputs.mean = row_numbers_beside(x, mean_->info());
    if (spread_) inputs.rstd = row_numbers_beside(x, spread_->info());
    GradPlan plan = lnorm::make_grad_plan(inputs, arguments_.normalization.options, {}, {},
                                          {.whole = true, .ordered = true});
    for (auto* const actual : {&dx_, &dweight_, &dbias_}) {
      if (!*actual) continue;
      const TensorInfo& info = (*actual)->info();
      check_dtype(info);
      if (actual == &dx_) {
        check_same_shape(elements_beside(x, info), x);
      } else {
        check_parameter(info, plan.rows);
      }
    }
    return plan;
  }

  // Throws Error unless it has the shape of the weight.
  void check_parameter(const TensorInfo& info, const Plan& plan) const {
    const bool is_number =
        arguments_.normalization.weight && affine_inputs_.has_number_for_weight();
    const Shape expected = is_number ? Shape() : plan.affine_shape();
    if (info.shape == expected) return;
    throw Error(concat(printable(info.name), " has shape ", to_string(info.shape), ", expected ",
                       to_string(expected),
                       is_number         ? ", that of the weight"
                       : plan.has_groups ? ", that of the channels"
                       : arguments_.normalization.options.affine_axes
                           ? ", that of the affine axes"
                           : ", that of the normalized axes"));
  }

  static void check_dtype(const TensorInfo& actual) {
    if (is_floating(actual.dtype)) return;
    throw Error(concat(printable(actual.name), ": is ", lnorm::name(actual.dtype), ", expected ",
                       dtype_list(is_floating), ": nothing says the scale of integers"));
  }

  Plan make_plan(const TensorInfo& x, const InputName& name) {
    DType out = output_dtype(x.dtype, {});
    if (output_) {
      check_auxiliary_inputs(x, name, [&] {
        for (auto* const input : {&output_, &saved_mean_, &saved_rstd_}) {
          if (*input) (*input)->find(name);
        }
      });
      const TensorInfo& actual = output_->info();
      check_dtype(actual);
      check_same_shape(elements_beside(x, actual), x);
      out = actual.dtype;
      for (auto* const saved : {&saved_mean_, &saved_rstd_}) {
        if (*saved) {
          check_row_numbers((*saved)->info(), x, arguments_.normalization.options.axes);
        }
      }
    }
    Plan plan = lnorm::make_plan(residual_.check(x, out, name), arguments_.normalization.options,
                                 out, {.whole = true, .ordered = true});
    plan.saturates = arguments_.output.saturates;
    const bool is_for_float8 = arguments_.output.saturates || arguments_.output.scale;
    if (is_for_float8 && output_ && !is_float8(out)) {
      throw Error(concat(arguments_.output.saturates ? "--saturate" : "--output-scale",
                         " is for float8, and ", printable(output_->info().name), " is ",
                         lnorm::name(out)));
    }
    return plan;
  }

  // After this the check has no error map, which would take memory.
  void add_section(NamedCheck& one) {
    Check& check = one.check;
    const std::size_t number = sections_seen_++;
    sections_.add(number, {static_cast<double>(check.verdict), check.judged.tree.ratio},
                  [&] { return page::check_section(concat("tensor-", number), one.name, check); });
    if (check.details) check.details->error_map.reset();
  }

  bool has_page() const { return !arguments_.page.path.empty(); }

  CheckOptions check_options(DType out) const {
    const NormalizationArguments& normalization = arguments_.normalization;
    CheckOptions options{.arithmetic = arguments_.arithmetic.value_or(
                             out == DType::float64 ? DType::float64 : DType::float32),
                         .depth = arguments_.depth,
                         .zero_centered_weight = normalization.options.zero_centered_weight,
                         .has_weight = normalization.weight.has_value(),
                         .has_bias = normalization.bias.has_value(),
                         .rounding = normalization.options.rounding,
                         .output_scale = arguments_.output.scale.value_or(1),
                         .kernels = {},
                         .criteria = {}};
    if (explains_) options.kernels = choose_;
    if (has_criteria(arguments_)) options.criteria = criteria_of(arguments_, nullptr, out, out);
    return options;
  }

  void write_json_report(bool several, ByteSink& out) const {
    several ? write_json(checks_, out) : write_json(checks_.front().check, out);
  }

  void write_text_report(bool several, ByteSink& out) const {
    Style style = output_style(arguments_.color, Style::kAnyWidth);
    style.width = arguments_.linewidth.value_or(style.width);
    if (several) return write_text(checks_, style, out);
    const Check& check = checks_.front().check;
    write_text(check, style, out);
    if (!check.details || (!arguments_.worst && !arguments_.histogram)) return;
    out.write("\n");
    write_text(*check.details, arguments_.histogram, style, out);
  }

  const Arguments& arguments_;
  const Backend& backend_;
  ResidualInput residual_;
  bool explains_;  // the exit status and the verdict take no explanation
  ChooseKernel choose_;
  std::size_t position_ = 0;  // among the inputs that --from, --as and --offset are for
  // The backward pass, and the gradients to judge.
  std::optional<AuxiliaryInput> dy_;
  std::optional<AuxiliaryInput> output_;
  std::optional<AuxiliaryInput> dx_;
  std::optional<AuxiliaryInput> dweight_;
  std::optional<AuxiliaryInput> dbias_;
  std::optional<AuxiliaryInput> saved_mean_;
  std::optional<AuxiliaryInput> saved_rstd_;
  std::optional<AuxiliaryInput> mean_;
  std::optional<AuxiliaryInput> spread_;  // --rstd or --variance
  AffineInputs affine_inputs_;
  GivenInputs given_;  // of the forward pass
  MaskInput mask_;
  std::vector<NamedCheck> checks_;
  OutlierSections sections_{kMaxSections};
  std::size_t sections_seen_ = 0;
  std::optional<PageOutput> page_output_;
};

}  // namespace

int check(const Arguments& arguments) {
  const InputArguments& input = arguments.input;
  std::vector<std::string> others;
  for (const std::string& name :
       {arguments.checked, arguments.dy, arguments.dx.value_or(""), arguments.dweight.value_or(""),
        arguments.dbias.value_or(""), arguments.save_mean.value_or(""),
        arguments.save_rstd.value_or(""), arguments.mask.value_or("")}) {
    if (!name.empty()) others.push_back(name);
  }
  check_inputs(input, arguments.normalization, arguments.work, others);
  Inputs inputs = open_inputs(input.names, input.options);
  auto* const selection = std::get_if<Selection>(&inputs);
  const bool several = selection == nullptr || selection->several || !arguments.dy.empty() ||
                       arguments.save_mean || arguments.save_rstd;
  if (selection != nullptr && selection->tensors.empty()) {
    throw Error(concat(printable(selection->name), ": has no tensors"));
  }
  if (selection != nullptr) choose_tensors(arguments.pairing, *selection);
  refuse_details(arguments, several);
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
