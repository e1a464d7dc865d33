#include "lnorm/pipeline/check.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "companions.hpp"
#include "each_tensor.hpp"
#include "judging.hpp"
#include "lnorm/core/axes.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/layout/row_slice.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/pipeline/compare.hpp"
#include "lnorm/report/page/sections.hpp"
#include "quantization.hpp"
#include "report_output.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

// OUTPUT of several inputs is found by their names, unless it says how itself.
std::string output_word(const Arguments& arguments, const Selection* selection) {
  if (!arguments.tensors.contains(TensorRole::output)) return "";
  const std::string& word = arguments.tensors.at(TensorRole::output);
  if (selection == nullptr || !selection->several || has_placeholder(word)) return word;
  constexpr std::string_view kAll = ":*";
  if (word.ends_with(kAll)) return concat(word.substr(0, word.size() - kAll.size()), ":{}");
  const bool has_pattern = word.find('*', std::min(word.find(':'), word.size())) != word.npos;
  return has_pattern ? word : concat(word, ":{}");
}

// Whether OUTPUT is not all that is judged.
bool judges_more(const Arguments& arguments) {
  constexpr std::string_view kMore = "--dy --actual-mean --actual-rstd --actual-scale --actual-sum";
  return !arguments.first_of(kMore).empty();
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
  const std::string_view option = arguments.first_of("--worst --histogram --rows-out");
  if (!several || option.empty()) return;
  if (judges_more(arguments)) {
    throw Error(
        concat(option, " shows OUTPUT alone, found gradients or statistics to judge as well"));
  }
  throw Error(concat(option, " has no effect: several tensors have a line each"),
              "FILE:NAME judges one");
}

// Quantized outputs have a verdict, and nothing else.
void refuse_with_quantized(const Arguments& arguments) {
  const std::string_view details = arguments.first_of("--worst --histogram --rows-out");
  const std::string_view tensors = arguments.first_of("--mask --dy");
  const bool has_output = arguments.tensors.contains(TensorRole::output);
  const std::string_view option = !details.empty()             ? details
                                  : arguments.page.is_wanted() ? "--page"
                                  : has_criteria(arguments)    ? "a criterion"
                                  : !tensors.empty()           ? tensors
                                  : !has_output                ? "no OUTPUT"
                                                               : "";
  if (!option.empty())
    throw Error(concat("--quantize judges OUTPUT and its scales, found ", option));
}

// Whether an option asks for a comparison of OUTPUT with the exact result.
bool wants_details(const Arguments& arguments) {
  return arguments.page.is_wanted() ||
         !arguments.first_of("--worst --histogram --rows-out").empty();
}

// Makes it: reads x once more, and writes the exact result to a temporary file. Both sources have random access.
Comparison compare_with_exact(const Arguments& arguments, TensorSource& x, TensorSource& actual,
                              const Plan& plan, const CheckInputs& inputs,
                              const RunOptions& options) {
  TensorInfo result = plan.result();
  result.name = "the exact result";
  TensorSpool spool(result);
  LentSource source(x);
  const Backend& backend = find_backend(arguments.normalization.kernel);
  run(source, plan, normalization(backend, inputs.given, inputs.affine, plan.formula), {}, &spool,
      options);
  ListLimits limits{0, arguments.worst.value_or(5)};
  limits.rows = arguments.rows_out.has_value();
  if (arguments.page.is_wanted()) limits.map.emplace();
  // What is written of a slice has the shape of its rows already.
  auto exact = spool.source();
  if (!x.info().slice) exact = grouped_as(std::move(exact), x.info());
  std::optional<Axes> row_axes;
  if (arguments.axes) {
    row_axes = plan.axes;
    std::ranges::sort(*row_axes);  // columns are numbered in the order of the file
  }
  return Comparer().compare(actual, *exact, criteria_of(arguments, nullptr, plan.out, plan.out),
                            limits, options, row_axes, inputs.mask);
}

class Checking {
 public:
  Checking(const Arguments& arguments, const Selection* selection)
      : arguments_(arguments),
        backend_(find_backend(arguments.normalization.kernel)),
        explains_(!arguments.quiet || arguments.save_json || arguments.save_junit ||
                  wants_details(arguments)),
        choose_(kernel_choice(arguments)),
        companions_(arguments, output_word(arguments, selection)) {
    // A verdict has thousands of bytes: a list that grows would move them all again and again.
    if (selection != nullptr) checks_.reserve(selection->tensors.size());
    if (arguments.page.is_wanted() && arguments.work.ranks->is_first()) {
      page_output_.emplace("--page", arguments.page);
    }
  }

  Plan check(const TensorInfo& x, const InputName& name) {
    Plan plan = make_plan(x, name);
    companions_.check_affine(plan, x, name);
    if (has(TensorRole::output)) companions_.check(Companions::kGiven, x, name);
    companions_.check({TensorRole::mask}, x, name);
    if (has(TensorRole::dy)) make_grad_plan(x, name);
    return plan;
  }

  void run(OpenedTensor& tensor, const InputName& name, TensorWork& work) {
    const TensorInfo x = tensor.source->info();
    const Plan plan = check(x, name);
    const Affine& affine = companions_.affine(plan);
    const auto alone = std::move(tensor.source);
    // Rows that the tree bound does not hold are read again.
    const auto rows = [&](SumRounding rounding) {
      return with_random_access(companions_.add_residual(std::make_unique<LentSource>(*alone),
                                                         plan.rounding, work.threads(), rounding));
    };
    const auto source = rows(SumRounding::once);
    const RunOptions options = work.begin(plan, *source, nullptr, backend_.name, false);
    auto found = judged(*source, *alone, x, name, plan, affine, options);
    // A kernel that adds in float32 has another sum: the one by which more of its tensors are right is taken.
    const auto fails = [](const NamedCheck& one) { return one.exit_status() != 0; };
    if (alone->has_random_access() && companions_.may_have_other_sum(x, plan.rounding) &&
        std::ranges::any_of(found, fails)) {
      const auto by_float32 = rows(SumRounding::by_float32);
      auto again =
          judged(*by_float32, *alone, x, name, plan, affine, {options.threads, {}, options.ranks});
      if (std::ranges::count_if(again, fails) < std::ranges::count_if(found, fails)) {
        found = std::move(again);
      }
    }
    work.end();
    source->finish();
    alone->finish();
    companions_.finish();
    if (!work.has_report()) return;
    for (NamedCheck& one : found) {
      if (arguments_.page.is_wanted()) add_section(one);
    }
    std::move(found.begin(), found.end(), std::back_inserter(checks_));
  }

  void failed(const std::string& name, const Error& error) {
    checks_.push_back({name, {}, error.what()});
  }

  // Writes all reports. Returns the exit status.
  int report(bool several) {
    if (!arguments_.work.ranks->is_first()) return 0;
    save_report("--save-json", arguments_.save_json,
                [&](ByteSink& out) { write_json_report(several, out); });
    save_report("--save-junit", arguments_.save_junit,
                [&](ByteSink& out) { write_junit(checks_, out); });
    save_report("--rows-out", arguments_.rows_out, [&](ByteSink& out) {
      write_rows_csv(*checks_.front().check.details, in_parallel(arguments_.work.threads), out);
    });
    if (page_output_) {
      page_output_->write(
          concat(has(TensorRole::output) ? title_of(arguments_.tensors.at(TensorRole::output))
                                         : "gradients",
                 " and layer norm of ", title_of(arguments_.input.names.front())),
          "lnorm check", sections_.take());
    }
    print_report(arguments_, [&](ByteSink& out) {
      arguments_.report == Report::json ? write_json_report(several, out)
                                        : write_text_report(several, out);
    });
    int status = 0;
    for (const NamedCheck& tensor : checks_) status = std::max(status, tensor.exit_status());
    return status;
  }

 private:
  bool has(TensorRole role) const { return companions_.has(role); }

  // --ddof 0 is refused beside --unbiased, which must go.
  void replace_unbiased(std::vector<std::string>& options) const {
    const auto ddof = std::ranges::find(options, "--ddof 0");
    if (ddof == options.end() || arguments_.first_of("--unbiased").empty()) return;
    options.erase(ddof);
    options.emplace_back("without --unbiased");
  }

  // By rows of x, or of its sum with the residual.
  std::vector<NamedCheck> judged(TensorSource& source, TensorSource& alone, const TensorInfo& x,
                                 const InputName& name, const Plan& plan, const Affine& affine,
                                 const RunOptions& options) {
    std::vector<NamedCheck> found;
    if (has(TensorRole::output)) {
      Check y = arguments_.quantization
                    ? check_quantized(source, alone, x, plan, affine, options)
                    : check_output(source, alone, x, name, plan, affine, options);
      std::vector<Check> saved = std::exchange(y.statistics, {});
      found.push_back({name.title, std::move(y)});
      if (has(TensorRole::actual_sum)) {
        TensorSource& actual = *companions_.open(TensorRole::actual_sum, x, true);
        saved.push_back(
            check_sum(source, actual, plan, backend_, check_options(actual.info().dtype), options));
        actual.finish();
      }
      add_parts(name, std::move(saved), found);
    }
    if (has(TensorRole::dy)) check_gradients(source, x, name, options, found);
    // Beside dx, mean and the like.
    if (has(TensorRole::output) && found.size() > 1 && !name.several) found.front().name = "y";
    for (NamedCheck& one : found) {
      for (FormulaFit& fit : one.check.diagnosis.explanations) replace_unbiased(fit.options);
    }
    return found;
  }

  // INPUT alone; null where there is no residual, or it cannot be read again.
  TensorSource* without_residual(TensorSource& alone) const {
    return has(TensorRole::residual) && alone.has_random_access() ? &alone : nullptr;
  }

  // Whether rows are sums that are not rounded.
  bool is_unrounded_sum() const {
    return has(TensorRole::residual) && !arguments_.normalization.round_sum;
  }

  CheckInputs inputs_of(TensorSource& source, TensorSource& alone, const TensorInfo& x,
                        const Plan& plan, const Affine& affine) {
    return {.x = source,
            .actual = *companions_.open(TensorRole::output, x, true),
            .alone = without_residual(alone),
            .residual = companions_.residual_again(alone.info()),
            .is_sum = is_unrounded_sum(),
            .weight = companions_.weight(),
            .bias = companions_.bias(),
            .affine = affine,
            .given = companions_.given(plan)};
  }

  Check check_output(TensorSource& source, TensorSource& alone, const TensorInfo& x,
                     const InputName& name, const Plan& plan, const Affine& affine,
                     const RunOptions& options) {
    const auto mask = companions_.mask(x, name);
    CheckInputs inputs = inputs_of(source, alone, x, plan, affine);
    inputs.mean = companions_.open(TensorRole::actual_mean, x, true);
    inputs.rstd = companions_.open(TensorRole::actual_rstd, x, true);
    inputs.mask = mask;
    Check found = lnorm::check(inputs, plan, backend_, check_options(plan.out), options);
    if (wants_details(arguments_)) {
      found.details = std::make_shared<Comparison>(
          compare_with_exact(arguments_, source, inputs.actual, plan, inputs, options));
    }
    inputs.actual.finish();
    return found;
  }

  Check check_quantized(TensorSource& source, TensorSource& alone, const TensorInfo& x,
                        const Plan& plan, const Affine& affine, const RunOptions& options) {
    const CheckInputs inputs = inputs_of(source, alone, x, plan, affine);
    const Quantization quantization = quantization_of(arguments_.quantization, plan);
    Check found = lnorm::check_quantized(
        inputs, {.quantization = quantization, .given_scale = companions_.given_scale(plan)},
        {.source = companions_.open(TensorRole::actual_scale, x, true),
         .is_transposed = arguments_.quantization.is_transposed},
        plan, backend_, check_options(plan.rounding), options);
    inputs.actual.finish();
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
    companions_.affine(plan.rows);  // each number once
    TensorSource* const dx = companions_.open(TensorRole::actual_dx, x, true);
    TensorSource* const dweight = companions_.open(TensorRole::actual_dweight, x, true);
    TensorSource* const dbias = companions_.open(TensorRole::actual_dbias, x, true);
    const auto is_number = [](const TensorSource* tensor) {
      return tensor != nullptr && tensor->info().shape.empty();
    };
    const GradientCheckInputs inputs{
        .sources = companions_.open_backward(source, x, true),
        .dx = dx,
        .dweight = dweight,
        .dbias = dbias,
        .is_sum = is_unrounded_sum(),
        .is_uniform = (is_number(dweight) || is_number(dbias)) && !x.shape.empty(),
        .weight = companions_.weight(),
        .bias = companions_.bias()};
    // The first of them says what the kernel computes in.
    const DType dtype = (dx != nullptr ? dx : dweight != nullptr ? dweight : dbias)->info().dtype;
    add_parts(name,
              lnorm::check_gradients(inputs, plan, backend_, check_options(dtype),
                                     {options.threads, {}, options.ranks}),
              found);
  }

  GradPlan make_grad_plan(const TensorInfo& x, const InputName& name) {
    static constexpr auto kJudged = {TensorRole::actual_dx, TensorRole::actual_dweight,
                                     TensorRole::actual_dbias};
    companions_.find({TensorRole::dy}, x, name);
    companions_.find(Companions::kGiven, x, name);
    companions_.find(kJudged, x, name);
    GradPlan plan = lnorm::make_grad_plan(companions_.gradient_inputs(x, name, false),
                                          arguments_.normalization.options, {}, {}, kWholeRows);
    companions_.check_shapes(kJudged, x, &plan.rows);
    return plan;
  }

  Plan make_plan(const TensorInfo& x, const InputName& name) {
    static constexpr auto kJudged = {TensorRole::output, TensorRole::actual_mean,
                                     TensorRole::actual_rstd, TensorRole::actual_sum};
    companions_.find(kJudged, x, name);
    companions_.check_shapes(kJudged, x);
    const TensorInfo* const actual = companions_.info(TensorRole::output);
    if (arguments_.quantization && !is_quantized_dtype(actual->dtype)) {
      throw Error(concat(printable(actual->name), ": is ", lnorm::name(actual->dtype),
                         ", expected ", dtype_list(is_quantized_dtype), " with --quantize"));
    }
    Plan plan = companions_.plan(x, name, observed_rows(arguments_.quantization),
                                 actual != nullptr ? std::optional(actual->dtype) : std::nullopt);
    if (companions_.has(TensorRole::actual_scale)) {
      const Plan whole = x.slice
                             ? companions_.plan(whole_of(x), name,
                                                observed_rows(arguments_.quantization), plan.out)
                             : plan;
      companions_.check({TensorRole::actual_scale}, x, name, &whole);
    }
    plan.saturates = arguments_.output.saturates;
    const bool is_for_float8 = arguments_.output.saturates || arguments_.output.scale;
    if (is_for_float8 && actual != nullptr && !is_float8(plan.out)) {
      throw Error(concat(arguments_.output.saturates ? "--saturate" : "--output-scale",
                         " is for float8, and ", printable(actual->name), " is ",
                         lnorm::name(plan.out)));
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

  CheckOptions check_options(DType out) const {
    const NormalizationArguments& normalization = arguments_.normalization;
    CheckOptions options{.arithmetic = arguments_.arithmetic.value_or(
                             out == DType::float64 ? DType::float64 : DType::float32),
                         .depth = arguments_.depth,
                         .zero_centered_weight = normalization.options.zero_centered_weight,
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
    const Style style = report_style(arguments_);
    if (several) return write_text(checks_, style, out);
    const Check& check = checks_.front().check;
    write_text(check, style, out);
    if (!check.details || (!arguments_.worst && !arguments_.histogram)) return;
    out.write("\n");
    write_text(*check.details, arguments_.histogram, style, out);
  }

  const Arguments& arguments_;
  const Backend& backend_;
  bool explains_;  // the exit status and the verdict take no explanation
  ChooseKernel choose_;
  Companions companions_;
  std::vector<NamedCheck> checks_;
  OutlierSections sections_{kMaxSections};
  std::size_t sections_seen_ = 0;
  std::optional<PageOutput> page_output_;
};

}  // namespace

int check(const Arguments& arguments) {
  check_quantization(arguments);
  Inputs inputs = open_inputs(arguments);
  auto* const selection = std::get_if<Selection>(&inputs);
  const bool several = selection == nullptr || selection->several || judges_more(arguments);
  if (selection != nullptr && selection->tensors.empty()) {
    throw Error(concat(printable(selection->name), ": has no tensors"));
  }
  if (arguments.quantization) refuse_with_quantized(arguments);
  if (selection != nullptr) choose_tensors(arguments.pairing, *selection);
  refuse_details(arguments, several);
  Checking checking(arguments, selection);
  const int status = look_at_each(inputs, arguments, checking);
  return std::max(status, checking.report(several));
}

}  // namespace lnorm::app
