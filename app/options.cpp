#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/report/numbers.hpp"
#include "option_value.hpp"
#include "quantization.hpp"

namespace lnorm::app {

namespace {

using Value = OptionValue;
using Setting = Remedy::Setting;

constexpr Commands kTestingKernels = kCheck | kMutants;
constexpr Commands kQuantizing = kApply | kTestingKernels;
constexpr Commands kScaling = kQuantizing | kInputs;
constexpr Commands kNormalizing =
    kApply | kStats | kGrad | kExplain | kReport | kTestingKernels | kInputs;
constexpr Commands kReadingTensors = kAllCommands & ~kInputs;
constexpr Commands kGiven = kApply | kStats | kReport | kCheck | kExplain;
constexpr Commands kWritingTensors = kApply | kSoftmax | kGrad | kConvert;
constexpr Commands kPrinting = kWritingTensors | kShow;
constexpr Commands kReporting = kStats | kCompare | kTestingKernels | kExplain | kShow;
constexpr Commands kJudging = kCompare | kTestingKernels;
constexpr Commands kOfTwoInputs = kCompare | kCheck | kGrad | kMutants;
constexpr Commands kListing = kStats | kCompare | kShow;

constexpr std::string_view kFlag;    // has no value
constexpr std::string_view kOutput;  // the group of what the command puts out
constexpr std::string_view kNormalization = "Normalization";
constexpr std::string_view kInput = "Input";
constexpr std::string_view kQuantization = "Quantization, q = y / scale";
constexpr std::string_view kCriteria = "Criteria, of which all that are given must hold";
constexpr std::string_view kKernel = "Kernels that are right or wrong";
constexpr std::string_view kSeveral = "Several tensors (options with a PATTERN: several times)";
constexpr std::string_view kComparedRows = "Rows, of which those that differ are counted";
constexpr std::string_view kPrint = "Text output (torch.set_printoptions)";

constexpr std::string_view kAxesOptions = "--axis --axes --normalized-shape";
constexpr std::string_view kGroupsOptions =
    "--groups --axis --axes --normalized-shape --affine-axes";
constexpr std::string_view kReportOptions = "--json --csv";

constexpr std::string_view kAxisHelp = "First normalized axis; it and all after it (default -1)";
constexpr std::string_view kShapeHelp = "The trailing shape that is normalized, which must match";
constexpr std::string_view kAxesHelp = "The normalized axes as a list";
constexpr std::string_view kKeepGoingHelp =
    "Of several tensors do the others where one cannot be done";

constexpr std::string_view kAxesOrAxis = "here it is --axes; --axis A is A and all axes after it";
constexpr std::string_view kComputed =
    "apply computes them: --save-mean and --save-rstd write them, lnorm grad takes them as --mean "
    "and --rstd";
constexpr std::string_view kJsonOrCsv = "here it is --json, or --csv";
constexpr std::string_view kBins = "here it is --histogram, which chooses its bars";
constexpr std::string_view kFirstRows = "the first 5 rows are --rows :5";
constexpr std::string_view kFitsTerminal = "the report is as wide as the terminal, or 80 columns";
constexpr std::string_view kEveryRow = "lnorm stats --csv has every row, for sort to pick from";
constexpr std::string_view kKept =
    "mean and rstd keep the normalized axes as 1; --no-keepdim drops them";
constexpr std::string_view kNoAffine = "without --weight and --bias there are none";
constexpr std::string_view kOfStats = "lnorm stats has the mean and variance of every row";
constexpr std::string_view kShapeOfRaw = "a tensor keeps its shape; --shape is that of --from raw";
constexpr std::string_view kReported = "the report has the mean and variance of every row";

constexpr std::string_view kAxesWords = "dims dimension dimensions reduction-axes feature-axes";
constexpr std::string_view kReshapingWords =
    "reshape view unsqueeze flatten ravel expand permute transpose";
// The variance that divides is given. Saved statistics of x have a divisor in their gradient.
constexpr std::array<NoEffect, 3> kNoDivisor{
    {{.beside = "--rstd --variance", .unless = "--dy", .in = kGiven},
     {.beside = "--variance", .in = kGrad | kCheck}}};

constexpr std::array<NoEffect, 3> kNotQuantized{{{.without = "--quantize"}}};
constexpr std::array<NoEffect, 3> kTextAlone{{{.beside = kReportOptions}}};
constexpr std::array<NoEffect, 3> kShownOrOnPage{{{.beside = "--quiet --csv", .unless = "--page"}}};
constexpr std::array<NoEffect, 3> kReportedOrOnPage{{{.beside = "--quiet", .unless = "--page"}}};

constexpr std::string_view kRstdWords = "inv-std inv-std-dev invstd invstddev rsigma";
constexpr std::string_view kOutputWords = "out outfile out-file output-file save dest";

void set_axes(Arguments& a, NormalizedAxes axes) {
  a.axes = axes;
  a.normalization.options.axes = std::move(axes);
}
std::int64_t one_axis(const Value& v) {
  if (v.text.find(',') == v.text.npos) return v.integer();
  throw Error(concat(v.option, ": '", printable(v.text), "' is not an integer"),
              concat("here it is --axes ", shell_word(v.text)));
}
void set_axis(Arguments& a, const Value& v) { set_axes(a, FirstAxis{one_axis(v)}); }
void set_one_axis(Arguments& a, const Value& v) { set_axes(a, AxisList{{one_axis(v)}}); }
void set_shape(Arguments& a, const Value& v) { set_axes(a, NormalizedShape{v.list()}); }
void set_axis_list(Arguments& a, const Value& v) { set_axes(a, AxisList{v.list()}); }

void set_groups(Arguments& a, std::int64_t Groups::*number, std::int64_t value) {
  const auto* const given = std::get_if<Groups>(&a.normalization.options.axes);
  Groups groups = given != nullptr ? *given : Groups{};
  groups.*number = value;
  set_axes(a, groups);
}

void set_ddof(Arguments& a, std::int64_t ddof) {
  std::optional<std::int64_t>& given = a.normalization.ddof;
  if (given && *given != ddof) {
    throw Error(concat("found --unbiased, which is --ddof 1, and --ddof ",
                       ddof == 1 ? *given : ddof, ", expected one of them"));
  }
  given = ddof;
  a.normalization.options.formula.ddof = ddof;
}

void set_roundings(Arguments& a, const Value& v) {
  for (const std::string& step :
       v.words_of({"sum", "xhat", "product", "y"}, "sum, xhat, product and y")) {
    bool& rounds = step == "sum"    ? a.normalization.round_sum
                   : step == "xhat" ? a.normalization.options.rounding.xhat
                   : step == "y"    ? a.quantization.rounds_y
                                    : a.normalization.options.rounding.product;
    rounds = true;
  }
}

// Of commands that quantize nothing.
void set_roundings_without_y(Arguments& a, const Value& v) {
  v.words_of({"sum", "xhat", "product"}, "sum, xhat and product");
  set_roundings(a, v);
}

void set_quantization(Arguments& a, const Value& v) {
  QuantizationArguments& to = a.quantization;
  constexpr std::string_view kGroup = "group:";
  if (v.text.starts_with(kGroup)) {
    to.scale_of = ScaleOf::group;
    to.group = Value{v.option, "", v.text.substr(kGroup.size())}.integer(1, INT64_MAX);
    return;
  }
  const Value word{v.option, "row|tensor|static|group:K", v.text};
  to.scale_of = word.one_of({ScaleOf::row, ScaleOf::tensor, ScaleOf::given});
}

double float32_of(const Value& v) { return static_cast<float>(v.positive_quotient()); }

void append_ids(std::vector<std::string>& ids, const Value& v) {
  for (const std::string_view id : split(v.text, ',')) ids.emplace_back(id);
}

template <TensorRole role>
void set_tensor(Arguments& a, const Value& v) {
  if (role_row(role).naming != Naming::position || !v.text.empty()) a.tensors[role] = v.text;
}

template <Result result>
void set_result(Arguments& a, const Value& v) {
  a.results[result] = v.text;
}

// --top and --by: one is enough to ask for what stands out.
Top& top_of(Arguments& a) { return a.top ? *a.top : a.top.emplace(Top{.most = 5}); }

void set_keep_going(Arguments& a, const Value&) { a.input.keep_going = true; }
void set_softmax(Arguments& a, const Value&) { a.softmax = true; }
void set_histogram(Arguments& a, const Value&) { a.histogram = true; }
void set_all(Arguments& a, const Value&) { a.all = true; }
void set_digits(Arguments& a, const Value& v) { a.digits = static_cast<int>(v.count(1, 17)); }
void set_json(Arguments& a, const Value&) { a.report = Report::json; }
void set_csv(Arguments& a, const Value&) { a.report = Report::csv; }
void set_output(Arguments& a, const Value& v) { a.output.path = v.text; }
void set_page(Arguments& a, const Value& v) { a.page.path = v.text; }

When when(const Value& v) { return v.one_of({When::automatic, When::always, When::never}); }

// A count of PrintOptions.
template <class Count>
void set_print(Arguments& a, const Value& v, Count& count, std::int64_t most) {
  count = static_cast<Count>(v.integer(0, most));
  a.output.print.given = v.option;
}
constexpr std::int64_t kMaxPrinted = 1'000'000'000'000;

void set_threshold(Arguments& a, const Value& v) {
  set_print(a, v, a.output.print.options.threshold, kMaxPrinted);
  a.output.print.threshold = true;
}

template <class Predicate>
std::string dtype_names(Predicate is_one) {
  return joined(kDTypes, "|", [&](const DTypeRow& row) {
    return row.dtype != DType::float64_pair && is_one(row.dtype) ? row.name : "";
  });
}

std::string input_dtypes() {
  return dtype_names([](DType) { return true; });
}

std::string output_dtypes() {
  return concat(dtype_names(is_larger_float), '|', dtype_names(is_float8));
}

std::string apply_dtypes() { return concat(output_dtypes(), "|int8"); }

std::string input_formats() {
  return joined(formats(), "|", [](const FormatRow& row) {
    return row.open == nullptr ? ""
                               : joined({std::string(row.name), std::string(row.other_name)}, "|");
  });
}

std::string output_formats() {
  return joined(formats(), "|",
                [](const FormatRow& row) { return row.is_written() ? row.name : ""; });
}

std::string kernel_names() {
  return joined(backends(), "|", [](const Backend& backend) { return std::string(backend.name); });
}

constexpr Option kOptions[] = {
    // inputs
    Option("--shape", kInputs, "Inputs", "D[,D...]", "The shape of every x",
           [](Arguments& a, const Value& v) { a.made_shape = v.shape(); },
           {.called = {{{"size sizes"}}}}),
    Option("--dtype", kInputs, "Inputs", "float16|bfloat16|float32|float64",
           "The dtype of all tensors (default float32); with --quantize that of q",
           [](Arguments& a, const Value& v) {
             const std::optional<DType> q = parse_dtype(v.text);
             a.output.dtype = q && is_quantized_dtype(*q) ? q : v.dtype(v.choices);
           },
           {.called = {{{"type out-dtype"}}}}),
    Option("--as", kInputs, "Inputs", "float16|bfloat16|float32|float64",
           "With --quantize: the dtype of all tensors (default float32)",
           [](Arguments& a, const Value& v) { a.input.options.as = v.dtype(v.choices); },
           {.no_effect = kNotQuantized}),
    Option("--seed", kInputs, "Inputs", "N", "Other numbers of the same kind (default 0)",
           [](Arguments& a, const Value& v) { a.seed = v.count(); },
           {.called = {{{"random-seed rng-seed"}}}}),
    // grad
    Option("--dy", kGrad | kCheck | kMutants, "Backward", "T",
           "The gradient of what lnorm apply writes; a tensor of the input's shape",
           set_tensor<TensorRole::dy>,
           {.no_effect = {{{.without = "--actual-dx --actual-dweight --actual-dbias", .in = kCheck},
                           {.beside = "--quantize", .in = kMutants}}},
            .called = {{{"grad dout grad-out grad-output upstream"}}}}),
    Option("--mean", kGrad, "Backward", "T",
           "The rows' means as --save-mean writes them, in place of computed ones",
           set_tensor<TensorRole::mean>,
           {.no_effect = {{{.without = "--rstd --variance"}, {.beside = "--rms"}}},
            .called = {{{"mu"}}}}),
    Option("--rstd", kGrad, "Backward", "T", "The same of their rstd, as --save-rstd writes it",
           set_tensor<TensorRole::rstd>,
           {.one_of = "--rstd --variance",
            .called = {{{kRstdWords, kReported, kStats | kReport},
                        {kRstdWords, kComputed, kApply},
                        {kRstdWords},
                        {"invvar"}}}}),
    Option("--variance", kGrad, "Backward", "T",
           "With --mean: constants, not statistics of x, as batch norm's running_mean and "
           "running_var; eps is added to it",
           set_tensor<TensorRole::variance>, {.called = {{{"running-var running-variance var"}}}}),
    Option("--actual-dx", kCheck, "Backward", "T", "The kernel's dx, which is judged",
           set_tensor<TensorRole::actual_dx>,
           {.no_effect = {{{.without = "--dy"}}}, .called = {{{"dx"}}}}),
    Option("--actual-dweight", kCheck, "Backward", "T", "Its dweight, in the weight's shape",
           set_tensor<TensorRole::actual_dweight>,
           {.no_effect = {{{.without = "--dy"}}}, .called = {{{"dweight dgamma"}}}}),
    Option("--actual-dbias", kCheck, "Backward", "T", "Its dbias",
           set_tensor<TensorRole::actual_dbias>,
           {.no_effect = {{{.without = "--dy"}}}, .called = {{{"dbias dbeta"}}}}),
    Option("--actual-mean", kCheck, kKernel, "T",
           "The rows' means that the kernel has saved beside OUTPUT, which are judged as well",
           set_tensor<TensorRole::actual_mean>,
           {.no_effect = {{{.beside = "--rms"}, {.beside = "--rstd --variance"}}},
            .called = {{{"save-mean saved-mean mean-out"}}}}),
    Option("--actual-rstd", kCheck, kKernel, "T", "The same of their rstd",
           set_tensor<TensorRole::actual_rstd>,
           {.no_effect = {{{.beside = "--rstd --variance"}}},
            .called = {{{"save-rstd saved-rstd save-invstd rstd-out"}}}}),
    Option(
        "--mean", kGiven, kNormalization, "T",
        "The rows' means, given and not computed, with --rstd or --variance: one number a row, "
        "as batch norm's running_mean",
        set_tensor<TensorRole::mean>,
        {.no_effect = {{{.without = "--rstd --variance"}, {.beside = "--rms"}}},
         .called = {{{"running-mean moving-mean input-mean pop-mean"},
                     {"training-mode training train use-global-stats momentum track-running-stats "
                      "use-running-average",
                      "with --mean and --variance it is the norm of evaluation, without them "
                      "that of training"}}}}),
    Option("--rstd", kGiven, kNormalization, "T",
           "The same of their rstd, 1/s, where s contains eps", set_tensor<TensorRole::rstd>,
           {.one_of = "--rstd --variance"}),
    Option("--variance", kGiven, kNormalization, "T",
           "The same of the variances, without eps, as batch norm's running_var",
           set_tensor<TensorRole::variance>,
           {.called = {{{"running-var running-variance moving-variance input-var pop-var"},
                        {"var", {}, kGiven & ~(kStats | kReport)},
                        {"var", kReported, kStats | kReport}}}}),
    // explain
    Option("--row", kExplain, "Row", "I[,I...]",
           "Which row: its number, or its index along the axes that are not normalized; negative "
           "ones count from the end (default the first)",
           // As reports name it, too: 27 (2, 5).
           [](Arguments& a, const Value& v) {
             const std::size_t index = v.text.find(" (");
             a.row =
                 index == v.text.npos ? v.list() : Value{v.option, "", v.text.substr(index)}.list();
           },
           {.one_of = "--row --rows", .called = {{{"index"}}}}),
    // Axes
    Option("--axis", kSoftmax, "Axes", "A", "The axis that sums to 1 (default -1)", set_one_axis,
           {.one_of = kAxesOptions,
            .called = {{{"dim", "here it is --axis, or --axes for several"},
                        {"begin-norm-axis start-axis"}}}}),
    Option("--normalized-shape", kSoftmax, "Axes", "D[,D...]",
           "The trailing shape that sums to 1, which must match", set_shape,
           {.one_of = kAxesOptions, .called = {{{"norm-shape"}}}}),
    Option("--axes", kSoftmax, "Axes", "A[,A...]", "The axes that sum to 1 together", set_axis_list,
           {.called = {{{kAxesWords}}}}),
    Option(
        "--groups", kNormalizing, kNormalization, "G",
        "Group norm, as torch.nn.GroupNorm: a row is one of G groups of channels, over all axes "
        "but the first; weight and bias run along the channels",
        [](Arguments& a, const Value& v) { set_groups(a, &Groups::groups, v.integer()); },
        {.one_of = kGroupsOptions,
         .called = {{{"num-groups group-count ngroups"},
                     {"num-channels num-features", "the input's shape says how many there are"}}}}),
    Option("--channel-axis", kNormalizing, kNormalization, "C",
           "The axis that --groups splits (default 1; -1 is Flax's layout)",
           [](Arguments& a, const Value& v) { set_groups(a, &Groups::channel_axis, v.integer()); },
           {.no_effect = {{{.without = "--groups"}}},
            .called = {{{"data-format data-layout channels-last channel-dim",
                         "here it is --channel-axis, -1 where channels come last"}}}}),
    Option("--axis", kNormalizing, kNormalization, "A", kAxisHelp, set_axis,
           {.one_of = kAxesOptions,
            .called = {{{"dim", kAxesOrAxis}, {"begin-norm-axis start-axis"}}}}),
    Option("--normalized-shape", kNormalizing, kNormalization, "D[,D...]", kShapeHelp, set_shape,
           {.one_of = kAxesOptions, .called = {{{"norm-shape"}}}}),
    Option(
        "--axes", kNormalizing, kNormalization, "A[,A...]", kAxesHelp, set_axis_list,
        {.advice = {Setting::axes, "did you mean --axes {}?"},
         .called = {{{kAxesWords},
                     {kReshapingWords, kKeepsShape, kNormalizing | kSoftmax | kCompare},
                     {"squeeze", kKeepsShape, (kNormalizing & ~kApply) | kSoftmax | kCompare}}}}),
    Option("--affine-axes", kNormalizing, kNormalization, "A[,A...]",
           "The axes that weight and bias run along (default the normalized ones)",
           [](Arguments& a, const Value& v) {
             a.normalization.options.affine_axes = AxisList{v.list()};
           },
           {.no_effect = {{{.without = "--weight --bias --dweight --dbias",
                            .in = kAllCommands & ~(kInputs | kMutants | kCheck)},
                           {.without = "--weight --bias --actual-dweight --actual-dbias",
                            .in = kCheck}}},
            .called = {{{"weight-axes param-axes scale-axes"}}}}),
    // Normalization
    Option("--eps", kNormalizing, kNormalization, "E",
           "Added to the variance, or as --eps-on says; finite, not negative (default 1e-5)",
           [](Arguments& a, const Value& v) {
             a.normalization.options.formula.eps = v.real_not_negative();
           },
           {.no_effect = {{{.beside = "--rstd"}}},
            .called = {{{"epsilon e norm-eps layer-norm-eps layer-norm-epsilon rms-norm-eps "
                         "variance-epsilon"}}}}),
    Option("--eps-on", kNormalizing, kNormalization, "variance|std|max",
           "sqrt(var + eps), sqrt(var) + eps, or max(sqrt(var), eps) (default variance)",
           [](Arguments& a, const Value& v) {
             a.normalization.options.formula.eps_on =
                 v.one_of({EpsOn::variance, EpsOn::std, EpsOn::max});
           },
           {.no_effect = {{{.beside = "--rstd"}}}}),
    Option("--ddof", kNormalizing, kNormalization, "N", "The variance divides by n - N (default 0)",
           [](Arguments& a, const Value& v) {
             set_ddof(a, static_cast<std::int64_t>(v.count(0, INT64_MAX)));
           },
           {.no_effect = kNoDivisor, .called = {{{"correction"}}}}),
    Option("--unbiased", kNormalizing, kNormalization, kFlag, "The same as --ddof 1",
           [](Arguments& a, const Value&) { set_ddof(a, 1); },
           {.no_effect = kNoDivisor,
            .called = {{{"biased no-unbiased", "biased is the default: the variance divides by n"},
                        {"bessel sample"}}}}),
    Option("--weight,--gamma,--scale", kNormalizing & ~kInputs, kNormalization, "T",
           "Multiplies the normalized rows; a tensor of the shape of its axes, a JSON literal or a "
           "number",
           set_tensor<TensorRole::weight>, {.called = {{{"w"}}}}),
    Option("--bias,--beta,--shift", kNormalizing & ~(kGrad | kInputs), kNormalization, "T",
           "Is added to them; the same forms", set_tensor<TensorRole::bias>, {.called = {{{"b"}}}}),
    Option("--zero-centered-weight", kNormalizing, kNormalization, kFlag, "Multiply by 1 + weight",
           [](Arguments& a, const Value&) { a.normalization.options.zero_centered_weight = true; },
           {.no_effect = {{{.without = "--weight", .in = kReadingTensors & ~kMutants}}},
            .called = {{{"zero-centered-gamma add-unit-offset unit-offset"}}}}),
    Option("--rms", kNormalizing, kNormalization, kFlag,
           "RMS norm: no mean; the mean of squares (divided by n - N) for the variance",
           [](Arguments& a, const Value&) { a.normalization.options.formula.rms = true; },
           {.called = {{{"rmsnorm rms-norm no-mean"}}}}),
    Option("--residual", kNormalizing & ~kInputs, kNormalization, "T",
           "Is added to the input before all else: a tensor of the same shape",
           set_tensor<TensorRole::residual>),
    Option("--actual-sum", kCheck, kNormalization, "T",
           "The sum with --residual that the kernel has saved, which is judged as well",
           set_tensor<TensorRole::actual_sum>,
           {.no_effect = {{{.without = "--residual"}}}, .called = {{{"save-sum"}}}}),
    Option("--round", kQuantizing, kNormalization, "STEP[,STEP]",
           "Where else to round to the output dtype: the sum with --residual, xhat (before the "
           "weight), the product (before the bias), y (before --quantize)",
           set_roundings,
           {.advice = {Setting::rounded_sum, "--round sum rounds it to the output dtype"}}),
    Option("--round", kNormalizing & ~(kQuantizing | kGrad | kInputs), kNormalization,
           "STEP[,STEP]",
           "Where else to round to the output dtype: the sum with --residual, xhat (before the "
           "weight), the product (before the bias)",
           set_roundings_without_y,
           {.advice = {Setting::rounded_sum, "--round sum rounds it to the output dtype"}}),
    Option("--round", kInputs, kNormalization, "STEP[,STEP]",
           "Where else a kernel is to round to the dtype: xhat (before the weight), the product "
           "(before the bias), y (before --quantize)",
           [](Arguments& a, const Value& v) {
             v.words_of({"xhat", "product", "y"}, "xhat, product and y");
             set_roundings(a, v);
           }),
    Option("--round", kGrad, kNormalization, "sum",
           "sum: round the sum with --residual to the output dtype", set_roundings_without_y),
    // Quantization
    Option(
        "--quantize", kScaling, kQuantization, "row|tensor|group:K|static",
        "Divide by a scale and round to int8 or a float8; the value says whose largest |y| makes "
        "the scale, and static that it is given",
        set_quantization, {.called = {{{"quant quantization per-token dynamic-quant"}}}}),
    Option(
        "--quantize-axes", kScaling, kQuantization, "A[,A...]",
        "With --quantize row: the axes whose elements share a scale (default the normalized ones)",
        [](Arguments& a, const Value& v) { a.quantization.axes = AxisList{v.list()}; },
        {.no_effect = kNotQuantized}),
    Option("--qmax", kScaling, kQuantization, "Q",
           "What the largest |y| becomes (default 127, 448, 57344, 240)",
           [](Arguments& a, const Value& v) { a.quantization.qmax = v.positive_quotient(); },
           {.no_effect = kNotQuantized}),
    Option("--amax-min", kScaling, kQuantization, "E", "The least that counts as the largest |y|",
           [](Arguments& a, const Value& v) { a.quantization.amax_min = v.positive_quotient(); },
           {.no_effect = kNotQuantized}),
    Option("--amax-max", kScaling, kQuantization, "E",
           "The greatest that counts as the largest |y|",
           [](Arguments& a, const Value& v) { a.quantization.amax_max = v.positive_quotient(); },
           {.no_effect = kNotQuantized, .called = {{{"scale-ub"}}}}),
    Option("--scale-min", kScaling, kQuantization, "E", "The least scale, such as 1/229376",
           [](Arguments& a, const Value& v) { a.quantization.scale_min = float32_of(v); },
           {.no_effect = kNotQuantized}),
    Option("--scale-max", kScaling, kQuantization, "E", "The greatest scale",
           [](Arguments& a, const Value& v) { a.quantization.scale_max = float32_of(v); },
           {.no_effect = kNotQuantized}),
    Option("--scale-power-of-two", kScaling, kQuantization, kFlag,
           "Round scales up to powers of two",
           [](Arguments& a, const Value&) { a.quantization.power_of_two = true; },
           {.no_effect = kNotQuantized, .called = {{{"ue8m0 round-scale pow2-scale"}}}}),
    Option("--scale-dtype", kScaling, kQuantization, "float32|float8_e8m0",
           "Of the scales; float8_e8m0 with --scale-power-of-two (default float32)",
           [](Arguments& a, const Value& v) {
             a.quantization.scale_dtype = v.one_of({DType::float32, DType::float8_e8m0fnu});
           },
           {.no_effect = {{{.without = "--quantize"}, {.without = "--scale-power-of-two"}}}}),
    Option("--given-scale", kQuantizing, kQuantization, "T",
           "With --quantize static: the scale, a number or one for each number of the weight",
           set_tensor<TensorRole::given_scale>, {.no_effect = {{{.without = "--quantize"}}}}),
    Option("--actual-scale", kCheck, kQuantization, "T",
           "The scales that the kernel has saved, which are judged, and OUTPUT by them",
           set_tensor<TensorRole::actual_scale>, {.no_effect = kNotQuantized}),
    Option("--scale-transposed", kCheck, kQuantization, kFlag,
           "The groups come first in --actual-scale",
           [](Arguments& a, const Value&) { a.quantization.is_transposed = true; },
           {.no_effect = {{{.without = "--actual-scale"}}}}),
    Option("--save-scale", kApply, kQuantization, "PATH",
           "Write the scales; .npy unless its extension says otherwise", set_result<Result::scale>,
           {.no_effect = kNotQuantized}),
    Option("--kernel", kNormalizing & ~(kTestingKernels | kInputs), kNormalization, {},
           "Which code computes (default the first)",
           [](Arguments& a, const Value& v) { a.normalization.kernel = v.text; },
           {.value_of = kernel_names, .called = {{{"backend impl isa"}}}}),
    // Input
    Option("--from", kReadingTensors & ~kOfTwoInputs, kInput, {},
           "Input format (default by content); raw is elements alone",
           [](Arguments& a, const Value& v) { a.input.options.from = v.format(); },
           {.value_of = input_formats,
            .advice = {Setting::format, "--from {}"},
            .called = {{{"raw", "here it is --from raw"}, {"input-format in-format"}}}}),
    Option("--from", kOfTwoInputs, kInput, {},
           "Input format (default by content), or one each by position: raw,npy; raw is elements "
           "alone",
           [](Arguments& a, const Value& v) {
             a.input.from = v.each([](const Value& one) { return one.format(); });
           },
           {.value_of = input_formats,
            .called = {{{"raw", "here it is --from raw"}, {"input-format in-format"}}}}),
    Option(
        "--as", kReadingTensors & ~kOfTwoInputs, kInput, "DTYPE",
        "The dtype of what tells none: --from raw; JSON, which is float64 else; an .npy of dtype "
        "V2 (bfloat16) or V1 (float8_e4m3fn, float8_e5m2)",
        [](Arguments& a, const Value& v) { a.input.options.as = v.dtype(input_dtypes()); },
        {.advice = {Setting::dtype, "--as {} reads them so"}}),
    Option("--as", kOfTwoInputs, kInput, "DTYPE[,DTYPE]",
           "The dtype of what tells none, of all inputs or each by position: --from raw; JSON, "
           "which is "
           "float64 else; an .npy of dtype V2 or V1",
           [](Arguments& a, const Value& v) {
             a.input.as = v.each([](const Value& one) { return one.dtype(input_dtypes()); });
           }),
    Option("--shape", kReadingTensors, kInput, "D[,D...]",
           "The shape of --from raw; one size may be -1, for what the file has",
           [](Arguments& a, const Value& v) { a.input.options.shape = v.shape(-1); },
           {.advice = {Setting::raw_elements,
                       "raw elements, not text, are --from raw --as float32 --shape D[,D...]"},
            .called = {{{kReshapingWords, kShapeOfRaw, kShow}, {"squeeze", kShapeOfRaw, kShow}}}}),
    Option("--offset", kReadingTensors & ~kOfTwoInputs, kInput, "BYTES",
           "How many bytes of --from raw come before the elements (default 0)",
           [](Arguments& a, const Value& v) {
             a.input.options.offset = static_cast<std::int64_t>(v.count(0, INT64_MAX));
           }),
    Option(
        "--offset", kOfTwoInputs, kInput, "BYTES[,BYTES]",
        "How many bytes of --from raw come before the elements, of all inputs or each by position",
        [](Arguments& a, const Value& v) {
          a.input.offsets = v.each(
              [](const Value& one) { return static_cast<std::int64_t>(one.count(0, INT64_MAX)); });
        }),
    Option("--big-endian", kReadingTensors, kInput, kFlag,
           "The elements of --from raw have their most significant byte first",
           [](Arguments& a, const Value&) { a.input.options.byte_order = std::endian::big; },
           {.called = {{{"endian byte-order"}}}}),
    Option("--rows", kReadingTensors, kInput, "A:B",
           "Only rows A up to B, numbered as stats numbers them; as in Python, A or B may be "
           "left out, and negative ones count from the end",
           [](Arguments& a, const Value& v) { a.input.rows = v.rows(); },
           {.no_effect = {{{.beside = kReportOptions, .in = kShow}}},
            .called = {{{"row", "here it is --rows, of one row --rows 3:4"},
                        {"range row-range slice"},
                        {"nrows n head limit", kFirstRows},
                        {"top", kFirstRows, kAllCommands & ~(kStats | kCompare)},
                        {"tail", "the last 5 rows are --rows -5:"},
                        {"skiprows", "all from the 5th on are --rows 5:"}}}}),
    Option("--keep-going", kReadingTensors & ~kCompare, kInput, kFlag, kKeepGoingHelp,
           set_keep_going,
           {.called = {{{"include filter only",
                         "FILE:PATTERN chooses tensors, 'x.npz:h.*' for instance"}}}}),
    // compare
    Option("--rtol", kJudging, kCriteria, "R", "Relative tolerance",
           [](Arguments& a, const Value& v) { a.rtol = v.real_not_negative(); },
           {.called = {{{"tol", "here they are --rtol and --atol"}, {"rel rel-tol relative"}}}}),
    Option("--atol", kJudging, kCriteria, "A", "Absolute tolerance",
           [](Arguments& a, const Value& v) { a.atol = v.real_not_negative(); },
           {.called = {{{"abs abs-tol absolute"}}}}),
    Option("--max-ulp", kJudging, kCriteria, "N",
           "By how many units in the last place an element may be off, 0.5 for instance; +0 and "
           "-0 are 0 apart",
           [](Arguments& a, const Value& v) { a.criteria.max_ulp = v.real_not_negative(); },
           {.called = {{{"ulp ulps nulp"}}}}),
    Option("--max-row-ulp", kJudging, kCriteria, "E",
           "The same in units in the last place of the greatest |expected| of the element's row",
           [](Arguments& a, const Value& v) { a.criteria.max_row_ulp = v.real_not_negative(); }),
    Option(
        "--max-abs", kJudging, kCriteria, "E", "By how much an element may be off",
        [](Arguments& a, const Value& v) { a.criteria.max_abs = v.real_not_negative(); },
        {.called = {{{"max-diff", "here it is --max-abs; --max-diffs is how many are listed"}}}}),
    Option("--baseline", kCompare, kCriteria, "T",
           "What another kernel wrote, in place of ACTUAL: no element may be off by more than "
           "--factor times what T is off at most",
           set_tensor<TensorRole::baseline>,
           {.called = {{{"ref reference expected golden actual",
                         "ACTUAL and EXPECTED stand in this order, without options"}}}}),
    Option("--factor", kCompare, kCriteria, "F", "How many times (default 2)",
           [](Arguments& a, const Value& v) { a.factor = v.real_not_negative(); },
           {.no_effect = {{{.without = "--baseline"}}}}),
    Option("--max-mismatched", kJudging, kCriteria, "N|P%",
           "How many elements may be off by more than the options above allow, or by more than "
           "the defaults",
           [](Arguments& a, const Value& v) { a.criteria.max_mismatched = v.mismatch_limit(); }),
    Option("--max-mean-abs", kJudging, kCriteria, "E", "The greatest mean absolute error",
           [](Arguments& a, const Value& v) { a.criteria.max_mean_abs = v.real_not_negative(); },
           {.called = {{{"mae max-mae mean-abs"}}}}),
    Option("--max-rmse", kJudging, kCriteria, "E", "The greatest root mean square error",
           [](Arguments& a, const Value& v) { a.criteria.max_rmse = v.real_not_negative(); },
           {.called = {{{"rmse rms-error"}, {"mse max-mse", "here it is --max-rmse, its root"}}}}),
    Option("--min-cosine", kJudging, kCriteria, "C", "The least cosine similarity",
           [](Arguments& a, const Value& v) { a.criteria.min_cosine = v.cosine(); },
           {.called = {{{"cos cosine cosine-similarity cos-sim"}}}}),
    Option("--min-sqnr", kJudging, kCriteria, "DB", "The least signal-to-noise ratio (SQNR), in dB",
           [](Arguments& a, const Value& v) { a.criteria.min_sqnr = v.real(); },
           {.called = {{{"sqnr snr"}}}}),
    Option("--no-equal-nan", kJudging, kCriteria, kFlag, "NaN does not equal NaN",
           [](Arguments& a, const Value&) { a.criteria.equal_nan = false; },
           {.called = {{{"equal-nan", "NaN equals NaN, unless --no-equal-nan is given"}}}}),
    Option("--common", kCompare, kSeveral, kFlag, "Names on one side alone are no differences",
           [](Arguments& a, const Value&) { a.common = true; }, {.called = {{{"intersection"}}}}),
    Option("--only", kCompare | kCheck, kSeveral, "PATTERN",
           "Judge tensors of these names: * is any characters, ? one, [a-c] one of these",
           [](Arguments& a, const Value& v) { a.pairing.only.push_back(v.text); },
           {.repeats = true, .called = {{{"include filter"}}}}),
    Option("--skip", kCompare | kCheck, kSeveral, "PATTERN", "Judge no tensors of these names",
           [](Arguments& a, const Value& v) { a.pairing.skip.push_back(v.text); },
           {.repeats = true, .called = {{{"exclude ignore"}}}}),
    Option("--rename", kCompare, kSeveral, "PATTERN=NEW",
           "New names on both sides, before names are looked at: {1} is what the first * stood "
           "for, {} the old name",
           [](Arguments& a, const Value& v) { a.pairing.renamings.push_back(v.renaming()); },
           {.repeats = true, .called = {{{"map"}}}}),
    Option("--tolerance", kCompare, kSeveral, "PATTERN=R,A",
           "--rtol and --atol of tensors of these names",
           [](Arguments& a, const Value& v) { a.pairing.tolerances.push_back(v.tolerance()); },
           {.repeats = true}),
    Option("--keep-going", kCompare, kSeveral, kFlag, kKeepGoingHelp, set_keep_going),
    Option("--all", kCompare, kSeveral, kFlag,
           "A line for every tensor of many, not for those alone that differ", set_all,
           {.no_effect = {{{.beside = kReportOptions}, {.beside = "--quiet"}}}}),
    Option("--axis", kCompare, kComparedRows, "A", kAxisHelp, set_axis,
           {.one_of = kAxesOptions,
            .no_effect = kReportedOrOnPage,
            .called = {{{"dim", kAxesOrAxis}, {"begin-norm-axis start-axis"}}}}),
    Option("--normalized-shape", kCompare, kComparedRows, "D[,D...]", kShapeHelp, set_shape,
           {.one_of = kAxesOptions, .no_effect = kReportedOrOnPage, .called = {{{"norm-shape"}}}}),
    Option("--axes", kCompare, kComparedRows, "A[,A...]", kAxesHelp, set_axis_list,
           {.no_effect = kReportedOrOnPage, .called = {{{kAxesWords}}}}),
    // check
    Option("--arithmetic", kCheck, kKernel, "float16|bfloat16|float32|float64",
           "What the kernel computes in (default float32, float64 for float64 outputs)",
           [](Arguments& a, const Value& v) { a.arithmetic = v.dtype(v.choices); },
           {.called = {{{"precision compute-dtype accumulate-dtype acc-dtype"}}}}),
    Option("--depth", kCheck, kKernel, "N",
           "How many additions a term of its sums goes through (default unknown)",
           [](Arguments& a, const Value& v) {
             a.depth = static_cast<std::int64_t>(v.count(1, INT64_MAX));
           }),
    Option("--kernels", kTestingKernels, kKernel, "ID[,ID]",
           "Which wrong kernels are tried; * is any characters (default all)",
           [](Arguments& a, const Value& v) { append_ids(a.kernels, v); },
           {.no_effect = {{{.beside = "--quiet", .in = kCheck}}},
            .called = {{{"kernel", "here they are --kernels, the wrong kernels to try"}}}}),
    Option("--skip-kernels", kTestingKernels, kKernel, "ID[,ID]", "Which are not",
           [](Arguments& a, const Value& v) { append_ids(a.skipped_kernels, v); },
           {.no_effect = {{{.beside = "--quiet", .in = kCheck}}}}),
    Option("--list", kMutants, kKernel, kFlag,
           "List the wrong kernels, with the options that give the same; nothing is tried",
           [](Arguments& a, const Value&) { a.lists_kernels = true; },
           {.called = {{{"list-kernels list-mutants"}}}}),
    // Where results go
    Option("-o,--output", kInputs, kOutput, "PATH",
           "A folder, or a file that ends in .npz or .safetensors", set_output,
           {.called = {{{kOutputWords}}}}),
    Option("-o,--output", kApply | kSoftmax | kConvert, kOutput, "PATH",
           "Where the result goes; - is standard output", set_output,
           {.advice = {Setting::regular_output, "-o FILE has the others"},
            .called = {{{kOutputWords}}}}),
    Option("-o,--output,--dx", kGrad, kOutput, "PATH",
           "Where dx goes; - is standard output (default if no output is named)",
           set_result<Result::dx>,
           {.called = {{{kOutputWords}, {.words = "dinput grad-input", .name = "--dx"}}}}),
    Option("--dweight", kGrad, kOutput, "PATH",
           "Where dweight goes, in the weight's shape, and its dtype if no --dtype is given",
           set_result<Result::dweight>, {.called = {{{"dw dgamma dscale grad-weight"}}}}),
    Option("--dbias", kGrad, kOutput, "PATH", "The same of dbias", set_result<Result::dbias>,
           {.called = {{{"db dbeta dshift grad-bias"},
                        {"bias beta shift",
                         "dbias does not depend on bias, and neither do the others"}}}}),
    Option("-o,--output", kReport, kOutput, "PATH", "Where the page goes; - is standard output",
           set_page, {.called = {{{kOutputWords}}}}),
    Option("--to", kWritingTensors, kOutput, {},
           "Output format (default by the extension of -o, else the input's, npy for archives, "
           "safetensors for bfloat16, float8 and for several tensors; text on a terminal)",
           [](Arguments& a, const Value& v) { a.output.format = v.format(); },
           {.value_of = output_formats,
            .called = {{{"json", "here it is --to json"},
                        {"jsonl", "here it is --to jsonl"},
                        {"npy", "here it is --to npy"},
                        {"safetensors", "here it is --to safetensors"},
                        {"text txt", "here it is --to text"},
                        {"format output-format out-format"}}}}),
    Option("--dtype", kConvert, kOutput, {},
           "Round every element once to this dtype (default none: all bits stay)",
           [](Arguments& a, const Value& v) { a.output.dtype = v.dtype(v.choices); },
           {.value_of = output_dtypes, .called = {{{"type out-dtype output-dtype cast"}}}}),
    Option(
        "--dtype", kApply | kMutants, kOutput, {},
        "Output dtype (default the input's, float64 for integers); int8 with --quantize",
        [](Arguments& a, const Value& v) { a.output.dtype = v.dtype(v.choices); },
        {.value_of = apply_dtypes,
         .called =
             {{{"type out-dtype output-dtype cast"},
               {"stash-type compute-dtype accumulate-dtype acc-dtype precision use-fast-variance",
                "each result is exact, rounded once: there is no dtype to compute in", kApply}}}}),
    Option("--dtype", kWritingTensors & ~(kConvert | kApply), kOutput, {},
           "Output dtype (default the input's, float64 for integers)",
           [](Arguments& a, const Value& v) {
             a.output.dtype = a.parameter_dtype = v.dtype(v.choices);
           },
           {.value_of = output_dtypes, .called = {{{"type out-dtype output-dtype cast"}}}}),
    Option("--name", kWritingTensors, kOutput, "NAME",
           "What .safetensors and .npz call the tensor (default as the input is called)",
           [](Arguments& a, const Value& v) { a.output.name = v.text; },
           {.advice = {Setting::tensor_name, "--name gives it another"}}),
    Option("--nan", kWritingTensors, kOutput, "python|null",
           "How JSON writes NaN: as NaN, or as null (default python)",
           [](Arguments& a, const Value& v) {
             a.output.nan = v.one_of({JsonNan::python, JsonNan::null});
           }),
    Option("--saturate", kApply | kSoftmax | kConvert | kCheck, kOutput, kFlag,
           "What is beyond the greatest float8 becomes that, not NaN or infinity",
           [](Arguments& a, const Value&) { a.output.saturates = true; }),
    Option("--output-scale", kApply | kSoftmax | kCheck, kOutput, "S",
           "Multiply the result by S before it is rounded to float8",
           [](Arguments& a, const Value& v) { a.output.scale = v.real(); },
           {.no_effect = {{{.beside = "--quantize"}}}}),
    Option("--save-mean", kApply, kOutput, "PATH",
           "Write the rows' means, float64; .npy unless its extension says otherwise",
           set_result<Result::mean>,
           {.no_effect = {{{.beside = "--rstd --variance"}}},
            .called = {{{"mean mu", kReported, kStats | kReport},
                        {"mean", kOfStats, kShow},
                        {"mean mu", kComputed}}}}),
    Option("--save-rstd", kApply, kOutput, "PATH",
           "The same of their rstd, 1/s: 1/sqrt(var + eps), or as --eps-on says",
           set_result<Result::rstd>,
           {.no_effect = {{{.beside = "--rstd --variance"}}},
            .called = {{{"rstd std", kReported, kStats | kReport},
                        {"rstd", kOfStats, kShow},
                        {"rstd invvar", kComputed},
                        {"save-invstd save-invvar", kComputed},
                        {"std save-std", "--save-rstd writes rstd, which is 1 / std"}}}}),
    Option("--save-variance", kApply, kOutput, "PATH",
           "The same of their variances, as lnorm grad --variance takes them; by --rms the mean of "
           "squares",
           set_result<Result::variance>,
           {.no_effect = {{{.beside = "--rstd --variance"}}}, .called = {{{"save-var"}}}}),
    Option("--save-sum", kApply, kOutput, "PATH",
           "Write the sum with --residual, in the output dtype", set_result<Result::sum>,
           {.no_effect = {{{.without = "--residual"}}}}),
    Option("--no-keepdim", kApply, kOutput, kFlag,
           "Drop the normalized axes from mean, rstd and scales, not keep them as 1",
           [](Arguments& a, const Value&) { a.keepdim = false; },
           {.no_effect = {{{.without = "--save-mean --save-rstd --save-variance --save-scale"},
                           {.beside = "--groups"}}},
            .called = {{{"keepdim keepdims", kKept}, {"no-keepdims squeeze"}}}}),
    // What is reported
    Option("--mask", kCompare | kCheck | kStats, kOutput, "T",
           "Which elements are looked at: those at which it is not 0; it broadcasts to the input, "
           "as NumPy's arrays do. Rows are normalized whole",
           set_tensor<TensorRole::mask>,
           {.no_effect = {{{.beside = "--dy", .in = kCheck}}},
            .called = {{{"attention-mask padding-mask where"}}}}),
    Option("--worst", kCompare | kCheck, kOutput, "N",
           "How many of the worst elements are listed, or of the worst rows if axes are given "
           "(default 5)",
           [](Arguments& a, const Value& v) { a.worst = v.count(0, 1000); },
           {.no_effect = kShownOrOnPage, .called = {{{"top"}}}}),
    Option("--by", kCompare, kOutput, "ulp|abs|rel|row-ulp",
           "What the worst are measured by; row-ulp is in ulp of the row's greatest |expected| "
           "(default row-ulp)",
           [](Arguments& a, const Value& v) {
             a.by = v.one_of({WorstBy::ulp, WorstBy::abs, WorstBy::rel, WorstBy::row_ulp});
           },
           {.no_effect = kShownOrOnPage, .called = {{{"sort sort-by"}}}}),
    Option("--rows-out", kCompare | kCheck, kOutput, "PATH",
           "Write a line of CSV for every row that fails: row, elements, mismatched, max_abs, and "
           "the row's index where several axes number the rows",
           [](Arguments& a, const Value& v) { a.rows_out = v.text; }),
    Option("--max-diffs", kCompare, kOutput, "N",
           "How many of the first mismatches are listed (default 0, in JSON 5)",
           [](Arguments& a, const Value& v) { a.max_diffs = v.count(0, 1'000'000); },
           {.no_effect = kShownOrOnPage, .called = {{{"max-mismatches"}}}}),
    Option("--features", kStats, kOutput, kFlag,
           "Of every element of the row over all rows, in place of rows; NaN and infinity are "
           "counted and left out",
           [](Arguments& a, const Value&) { a.features = true; },
           {.no_effect = {{{.beside = "--softmax --histogram --weight --bias --rms --eps "
                                      "--eps-on --mean --rstd --variance --round"}}},
            .called = {{{"columns channels per-feature per-channel"}}}}),
    Option("--top", kStats, kOutput, "N",
           "The N rows, tensors or features that stand out, in place of all (default 5 with --by)",
           [](Arguments& a, const Value& v) { top_of(a).most = v.count(1, 1'000'000); },
           {.no_effect = {{{.beside = "--all"}}}, .called = {{{"worst"}}}}),
    Option("--by", kStats, kOutput, "mean|variance|variance-min|absmax|zeros|non-finite",
           "What stands out: the largest |mean|, the largest or the smallest variance, the largest "
           "|x|, the most zeros (of features), the most NaN and infinity (default absmax with "
           "--top)",
           [](Arguments& a, const Value& v) {
             top_of(a).by = v.one_of({TopBy::mean, TopBy::variance, TopBy::variance_min,
                                      TopBy::absmax, TopBy::zeros, TopBy::non_finite});
           },
           {.no_effect = {{{.beside = "--all"}}}, .called = {{{"sort sort-by"}}}}),
    Option("--softmax", kStats, kOutput, kFlag, "Softmax of every row beside its normalization",
           set_softmax),
    Option("--histogram", kStats, kOutput, kFlag,
           "Draw the distributions of elements and rows, too", set_histogram,
           {.no_effect = kTextAlone, .called = {{{"hist"}, {"bins", kBins}}}}),
    Option("--histogram", kCompare | kCheck, kOutput, kFlag,
           "Draw how the distances in ulp are distributed", set_histogram,
           {.no_effect = {{{.beside = kReportOptions}, {.beside = "--quiet"}}},
            .called = {{{"hist"}, {"bins", kBins}}}}),
    Option("--all", kStats, kOutput, kFlag, "Every row, not the first and last ones of many",
           set_all, {.no_effect = kTextAlone}),
    Option(
        "--digits", kStats, kOutput, "N", "Significant digits of the text (default 3)", set_digits,
        {.no_effect = kTextAlone, .called = {{{"precision"}, {"width linewidth", kFitsTerminal}}}}),
    Option(
        "--digits", kExplain, kOutput, "N", "Significant digits of the text (default 4)",
        set_digits,
        {.no_effect = kTextAlone, .called = {{{"precision"}, {"width linewidth", kFitsTerminal}}}}),
    Option("--header", kShow, kOutput, kFlag,
           "Name, dtype and shape first, as on a terminal; JSON, without a dtype, is float64",
           [](Arguments& a, const Value&) { a.header = true; }, {.no_effect = kTextAlone}),
    Option(
        "--linewidth", kJudging, kOutput, "N",
        "Characters a line of the text (default the terminal's width, elsewhere as many as it "
        "needs)",
        [](Arguments& a, const Value& v) { a.linewidth = static_cast<int>(v.count(1, 1'000'000)); },
        {.no_effect = {{{.beside = kReportOptions}, {.beside = "--quiet"}}},
         .called = {{{"width"}}}}),
    Option("--json", kStats, kOutput, kFlag, "Every row as JSON, in full precision", set_json,
           {.one_of = kReportOptions,
            .called = {{{"to format", kJsonOrCsv, kListing},
                        {"to format", "", kExplain},
                        {"output-format", "", kReporting}}}}),
    Option("--json", kTestingKernels, kOutput, kFlag, "The report as JSON", set_json,
           {.no_effect = {{{.beside = "--quiet"}}}}),
    Option("--save-json", kJudging, kOutput, "PATH", "Write it there as well",
           [](Arguments& a, const Value& v) { a.save_json = v.text; }),
    Option("--save-junit", kJudging, kOutput, "PATH",
           "Write the verdicts as JUnit XML, for CI: a test case a tensor, or a wrong kernel",
           [](Arguments& a, const Value& v) { a.save_junit = v.text; },
           {.called = {{{"junit junit-xml junitxml"}}}}),
    Option("--json", kCompare, kOutput, kFlag, "The report as JSON", set_json,
           {.one_of = kReportOptions, .no_effect = {{{.beside = "--quiet"}}}}),
    Option("--json", kExplain, kOutput, kFlag, "The same as JSON, in full precision", set_json),
    Option("--json", kShow, kOutput, kFlag, "The list of tensors as JSON, sizes in bytes", set_json,
           {.one_of = kReportOptions}),
    Option("--csv", kStats, kOutput, kFlag, "Every row as CSV, in full precision", set_csv, {}),
    Option("--csv", kCompare, kOutput, kFlag, "A line of CSV for every tensor", set_csv,
           {.no_effect = {{{.beside = "--quiet"}}}}),
    Option("--csv", kShow, kOutput, kFlag, "The list of tensors as CSV, sizes in bytes", set_csv),
    Option("-q,--quiet", kJudging, kOutput, kFlag, "No report, the exit status alone",
           [](Arguments& a, const Value&) { a.quiet = true; },
           {.called = {{{.words = "silent s", .name = "--quiet"}}}}),
    Option("--page", kCompare | kCheck, kOutput, "PATH",
           "Write a page to look at, in one HTML file", set_page, {.called = {{{"html"}}}}),
    Option("--spec", kCompare | kCheck | kReport, kOutput, "DIR",
           "Write the page's figures into this folder, as Vega specifications",
           [](Arguments& a, const Value& v) { a.page.specifications = v.text; },
           {.no_effect = {{{.without = "--page", .in = kCompare | kCheck}}},
            .called = {{{"to page html", "the page goes to -o report.html", kReport}}}}),
    Option("--softmax", kReport, kOutput, kFlag, "What softmax makes of the same rows",
           set_softmax),
    Option("--all", kReport, kOutput, kFlag,
           "A section for every tensor of many, not for the 50 that stand out most", set_all),
    Option("--color", kReporting, kOutput, "auto|always|never",
           "Color (default on a terminal, unless NO_COLOR is set)",
           [](Arguments& a, const Value& v) { a.color = when(v); }),
    // How the work is done
    Option(
        "--threads", kAllCommands, kOutput, "N",
        "How many threads work (default as many as the machine has)",
        [](Arguments& a, const Value& v) { a.work.threads = static_cast<int>(v.integer(1, 256)); },
        {.called = {{{"j jobs nthreads num-threads workers"}}}}),
    Option("--progress", kAllCommands, kOutput, "auto|always|never",
           "Progress on standard error after a second (default on a terminal)",
           [](Arguments& a, const Value& v) { a.work.progress = when(v); }),
    Option("--verbose", kAllCommands & ~kShow, kOutput, kFlag,
           "Tell on standard error how the data goes, and why",
           [](Arguments& a, const Value&) { a.work.verbose = true; }, {.called = {{{"v"}}}}),
    // Text as PyTorch prints it
    Option("--precision", kPrinting, kPrint, "N", "Digits after the point (default 4)",
           [](Arguments& a, const Value& v) {
             set_print(a, v, a.output.print.options.precision, 100);
           },
           {.no_effect = kTextAlone, .called = {{{"digits"}}}}),
    Option("--edgeitems", kPrinting, kPrint, "N", "Elements at each end of a summary (default 3)",
           [](Arguments& a, const Value& v) {
             set_print(a, v, a.output.print.options.edgeitems, kMaxPrinted);
             a.output.print.edgeitems = true;
           },
           {.no_effect = kTextAlone}),
    // They write all elements to a file, and summarize elsewhere as show does.
    Option("--threshold", kWritingTensors, kPrint, "N",
           "Summarize above this many elements (default 1000; in a file never)", set_threshold),
    Option("--threshold", kShow, kPrint, "N", "Summarize above this many elements (default 1000)",
           set_threshold, {.no_effect = kTextAlone}),
    Option("--linewidth", kPrinting, kPrint, "N", "Characters a line (default 80)",
           [](Arguments& a, const Value& v) {
             set_print(a, v, a.output.print.options.linewidth, kMaxPrinted);
           },
           {.no_effect = kTextAlone, .called = {{{"width"}}}}),
    Option("--sci-mode", kPrinting, kPrint, "auto|on|off", "Scientific notation (default auto)",
           [](Arguments& a, const Value& v) {
             using SciMode = PrintOptions::SciMode;
             a.output.print.options.sci_mode =
                 v.one_of({SciMode::automatic, SciMode::on, SciMode::off});
             a.output.print.given = v.option;
           },
           {.no_effect = kTextAlone, .called = {{{"suppress", "here it is --sci-mode off"}}}}),
    // CLI11 itself does what it says.
    Option(
        "-h,--help", kAllCommands, kOutput, kFlag, "Print this help message and exit", nullptr,
        {.called = {{{"affine elementwise-affine no-elementwise-affine no-affine no-weight no-bias",
                      kNoAffine},
                     {"use-scale use-bias center no-center no-scale", kNoAffine},
                     {"device gpu cuda", "all work is done by the processor"},
                     {"in input input-file file i x f",
                      "an input is named without an option: lnorm x.npy"},
                     {"tol", "the tolerances, --rtol and --atol, are options of lnorm compare"},
                     {"sort sort-by", kEveryRow}}}}),
};

}  // namespace

bool Option::has_name(std::string_view name) const {
  for (std::size_t at = names.find(name); at != names.npos; at = names.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || names[at - 1] == ',') && (end == names.size() || names[end] == ','))
      return true;
  }
  return false;
}

bool parse_real(std::string_view text, double& value) {
  const std::string digits(text.substr(text.starts_with('+') ? 1 : 0));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || digits.empty() || digits[0] == '+') return false;
  if (error == std::errc::result_out_of_range) value = std::strtod(digits.c_str(), nullptr);
  return digits.find_first_of("nN") == std::string::npos;  // inf and nan are no numbers
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t end = text.find(separator);
    words.push_back(text.substr(0, end));
    if (end == text.npos) return words;
    text.remove_prefix(end + 1);
  }
}

std::string range_text(const RowRange& range) {
  const auto row = [](const std::optional<std::int64_t>& number) {
    return number ? std::to_string(*number) : "";
  };
  return concat(row(range.first), ':', row(range.end));
}

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

void Arguments::take(const Option& option, const std::string& text) {
  option.set(*this, {std::string(option.name()), option.value_text(), text});
  options.push_back(&option);
}

bool Arguments::has(std::string_view option) const {
  return std::any_of(options.begin(), options.end(),
                     [&](const Option* one) { return one->has_name(option); });
}

std::string_view Arguments::first_of(std::string_view names) const {
  for (const std::string_view option : split(names, ' ')) {
    if (has(option)) return option;
  }
  return "";
}

std::span<const Option> all_options() { return kOptions; }

const Option* find_option(Commands commands, std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kOptions), std::end(kOptions), [&](const Option& option) {
        return (option.commands & commands) != 0 && option.has_name(name);
      });
  return found == std::end(kOptions) ? nullptr : found;
}

}  // namespace lnorm::app
