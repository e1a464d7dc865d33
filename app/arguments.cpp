#include "arguments.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <vector>

#include "generate/generate.hpp"
#include "help_formatter.hpp"
#include "hints.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/format.hpp"
#include "lnorm/io/npy/npy.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "option_groups.hpp"
#include "page_output.hpp"
#include "parse_values.hpp"
#include "print_error.hpp"

namespace lnorm::app {

namespace {

// apply and softmax write all elements to a file, and summarize elsewhere as show does.
constexpr std::string_view kThresholdOfResults = "1000; in a file never";

// Examples run in any folder: what they read, they have made before.
constexpr std::string_view kExamples =
    "Examples:\n"
    "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
    "  lnorm x.json\n"
    "  lnorm x.json --weight '[1, 1, 2]' --bias 0.5 --dtype float32 -o y.npy\n"
    "  cat y.npy | lnorm --axes 0,1 --unbiased --eps 0 --to text\n"
    "\n"
    "PATH:MEMBER names one tensor of a file that holds several (.npz, .safetensors,\n"
    "a JSON object); - is standard input.\n"
    "Exit status: 0 done, 1 compare found a difference, 2 anything that kept the\n"
    "work from being done.";

constexpr std::string_view kStatsExamples =
    "Examples:\n"
    "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
    "  lnorm stats x.json --softmax\n"
    "  lnorm stats x.json --unbiased --histogram\n"
    "  lnorm stats x.json --csv > stats.csv";

constexpr std::string_view kCompareExamples =
    "The tensors agree if every criterion that is given holds. An element is within\n"
    "tolerance if |actual - expected| <= atol + rtol * |expected|. Where no criterion\n"
    "is given, rtol and atol are those of torch.testing for the dtypes; of --rtol and\n"
    "--atol alone the other is 0. NaN or infinity against another value always fails.\n"
    "Distances are in ulp of the actual dtype, with a fraction, where the expected\n"
    "dtype is wider: 0.5 or less is correctly rounded.\n"
    "\n"
    "Files and folders of several tensors are compared name by name.\n"
    "\n"
    "Examples:\n"
    "  echo '[0.1, 0.2]' > actual.json\n"
    "  echo '[0.1, 0.20000000000000004]' > expected.json\n"
    "  lnorm compare actual.json expected.json && echo same\n"
    "  cat actual.json | lnorm compare - expected.json --max-ulp 1\n"
    "  lnorm actual.json --dtype float16 -o y16.npy\n"
    "  lnorm actual.json | lnorm compare y16.npy - --max-ulp 0.5 --min-sqnr 60\n"
    "  echo '{\"x\": [1, 2], \"y\": 3}' > a.json\n"
    "  echo '{\"m.x\": [1, 2], \"m.y\": 3, \"m.z\": 4}' > b.json\n"
    "  lnorm compare a.json b.json --rename 'm.*={1}' --common\n"
    "\n"
    "Exit status: 0 they agree, 1 they differ, 2 they could not be compared.";

constexpr std::string_view kSoftmaxExamples =
    "Examples:\n"
    "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
    "  lnorm softmax x.json --to text\n"
    "  lnorm softmax x.json --axes 0,1 --dtype float64 -o y.npy";

constexpr std::string_view kGradExamples =
    "The gradients of sum(dy * y) by x, weight and bias, where y is what lnorm apply\n"
    "writes. With g = dy * weight, and sums over a row,\n"
    "  dx = (g - sum(g) / n) / s - (x - mean) * sum(g * (x - mean)) / (n s^3)\n"
    "and over all rows\n"
    "  dweight = sum(dy * (x - mean) / s)      dbias = sum(dy)\n"
    "\n"
    "Examples:\n"
    "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
    "  echo '[[1, 0, 0], [0, 1, 2]]' > dy.json\n"
    "  lnorm grad x.json --dy dy.json --weight '[1, 1, 2]'\n"
    "  lnorm grad x.json --dy dy.json -o dx.npy --dweight dw.npy --dbias db.npy\n"
    "  cat dy.json | lnorm grad x.json --dy - --rms --to text";

constexpr std::string_view kExplainExamples =
    "Examples:\n"
    "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
    "  lnorm explain x.json\n"
    "  lnorm explain x.json --row 1 --weight '[1, 1, 2]' --bias 0.5 --unbiased\n"
    "  lnorm explain x.json --row -1 --rms --json";

constexpr std::string_view kShowExamples =
    "Examples:\n"
    "  echo '{\"x\": [[1, 2, 4], [3, 3, 9]], \"gamma\": [1, 1, 2]}' > model.json\n"
    "  lnorm show model.json\n"
    "  lnorm show model.json:x --precision 2 --header";

constexpr std::string_view kReportExamples =
    "The page needs no network and no other file. Its figures are made with Vega;\n"
    "--spec writes their specifications by themselves, for notebooks.\n"
    "\n"
    "Examples:\n"
    "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
    "  lnorm report x.json -o report.html\n"
    "  lnorm report x.json --softmax --unbiased -o report.html --spec figures/";

// The command line of one command while it is being read.
struct Command {
  CLI::App* app = nullptr;
  std::vector<std::string> words;  // the tensors that it names
};

// Everything that the options write to.
struct Parsed {
  std::string_view only;  // the command that is to have its options; empty for all of them
  Command apply, stats, compare, softmax, grad, explain, report, show;
  ApplyArguments apply_arguments;
  StatsArguments stats_arguments;
  CompareArguments compare_arguments;
  SoftmaxArguments softmax_arguments;
  GradArguments grad_arguments;
  ExplainArguments explain_arguments;
  ShowArguments show_arguments;
  ReportArguments report_arguments;
};

CLI::App& add_command(CLI::App& app, Command& command, const std::string& name,
                      const std::string& help, std::string_view examples) {
  const bool two = name == "compare";
  command.app = app.add_subcommand(name, help)->group("Commands");
  command.app
      ->add_option(two ? "ACTUAL" : "INPUT", command.words,
                   two ? "Two tensors" : "Tensors; standard input if not given")
      ->type_name(two ? "EXPECTED" : "")  // printed behind the name
      ->expected(1, 1'000'000)
      ->allow_extra_args(false);  // or CLI11 takes "[a,b]" apart
  command.app->allow_extras();
  command.app->footer(std::string(examples));
  return *command.app;
}

bool has_options(const Command& command, std::string_view only) {
  return only.empty() || command.app->get_name() == only;
}

void add_apply(CLI::App& app, Parsed& parsed) {
  ApplyArguments& arguments = parsed.apply_arguments;
  CLI::App& apply = add_command(app, parsed.apply, "apply",
                                "Normalize a tensor (the default command)", kExamples);
  if (!has_options(parsed.apply, parsed.only)) return;
  add_normalization(apply, arguments.normalization);
  add_input(apply, arguments.input);
  add_output(apply, arguments.output);
  add_parsed(
      apply, "--save-mean", [&](const std::string& text) { arguments.save_mean = text; },
      "Write the rows' means, float64; .npy unless named .safetensors, .json or .txt", "PATH");
  add_parsed(
      apply, "--save-rstd", [&](const std::string& text) { arguments.save_rstd = text; },
      "The same of what they are multiplied by, 1/sqrt(var + eps) or so", "PATH");
  add_parsed(
      apply, "--save-sum", [&](const std::string& text) { arguments.save_sum = text; },
      "Write the sum with --residual, in the output dtype", "PATH");
  apply.add_flag_callback(
      "--no-keepdim", [&] { arguments.keepdim = false; },
      "Drop the normalized axes from mean and rstd, not keep them as 1");
  add_work(apply, arguments.work);
  add_print(apply, arguments.output.print, kThresholdOfResults);
}

// An option for a number in a range, which set(number) takes.
template <class Set>
void add_number(CLI::App& app, const std::string& name, std::uint64_t least, std::uint64_t most,
                Set set, const std::string& help) {
  add_parsed(
      app, name, [=](const std::string& text) { set(parse_count(name, text, least, most)); }, help,
      "N");
}

// --json and --csv.
void add_report(CLI::App& app, Report& report, const std::string& json_help,
                const std::string& csv_help) {
  const auto set = [&report](Report wanted) {
    if (report != Report::text && report != wanted) {
      throw Error("found both --json and --csv, expected one of them");
    }
    report = wanted;
  };
  app.add_flag_callback(
      "--json", [=] { set(Report::json); }, json_help);
  app.add_flag_callback(
      "--csv", [=] { set(Report::csv); }, csv_help);
}

void add_stats(CLI::App& app, Parsed& parsed) {
  StatsArguments& arguments = parsed.stats_arguments;
  CLI::App& stats = add_command(app, parsed.stats, "stats",
                                "What normalization does to every row, in numbers", kStatsExamples);
  if (!has_options(parsed.stats, parsed.only)) return;
  add_normalization(stats, arguments.normalization);
  add_input(stats, arguments.input);
  stats.option_defaults()->group("Report");
  stats.add_flag("--softmax", arguments.softmax, "Softmax of every row beside its normalization");
  stats.add_flag("--histogram", arguments.histogram,
                 "Draw the distributions of elements and rows, too");
  stats.add_flag("--all", arguments.all, "Every row, not the first and last ones of many");
  add_number(
      stats, "--digits", 1, 17,
      [&](std::uint64_t digits) { arguments.digits = static_cast<int>(digits); },
      "Significant digits of the text (default 3)");
  add_report(stats, arguments.report, "Every row as JSON, in full precision",
             "Every row as CSV, in full precision");
  add_color(stats, arguments.color);
  add_work(stats, arguments.work);
}

// Which tensors of several are compared, and how.
void add_pairing(CLI::App& app, CompareArguments& arguments) {
  PairingRules& rules = arguments.pairing;
  app.option_defaults()->group("Several tensors (options with a PATTERN: several times)");
  app.add_flag("--common", arguments.common, "Names on one side alone are no differences");
  add_repeated(
      app, "--only", [&](const std::string& text) { rules.only.push_back(text); },
      "Compare tensors of these names: * is any characters, ? one, [a-c] one of these", "PATTERN");
  add_repeated(
      app, "--skip", [&](const std::string& text) { rules.skip.push_back(text); },
      "Compare no tensors of these names", "PATTERN");
  add_repeated(
      app, "--rename",
      [&](const std::string& text) { rules.renamings.push_back(parse_renaming(text)); },
      "New names on both sides, before names are looked at: {1} is what the first * stood for, {} "
      "the old name",
      "PATTERN=NEW");
  add_repeated(
      app, "--tolerance",
      [&](const std::string& text) { rules.tolerances.push_back(parse_tolerance(text)); },
      "--rtol and --atol of tensors of these names", "PATTERN=R,A");
  app.add_flag("--keep-going", arguments.keep_going,
               "Of several tensors do the others where one cannot be done");
}

// A criterion that is a number, 0 or more.
void add_bound(CLI::App& app, const std::string& name, std::optional<double>& bound,
               const std::string& help, const std::string& type) {
  add_parsed(
      app, name,
      [name, &bound](const std::string& text) { bound = parse_not_negative(name, text); }, help,
      type);
}

void add_criteria(CLI::App& app, CompareArguments& arguments) {
  Criteria& criteria = arguments.criteria;
  add_bound(app, "--rtol", arguments.rtol, "Relative tolerance", "R");
  add_bound(app, "--atol", arguments.atol, "Absolute tolerance", "A");
  add_bound(app, "--max-ulp", criteria.max_ulp,
            "By how many units in the last place an element may be off, 0.5 for instance; +0 and "
            "-0 are 0 "
            "apart",
            "N");
  add_bound(app, "--max-abs", criteria.max_abs, "By how much an element may be off", "E");
  add_parsed(
      app, "--max-mismatched",
      [&](const std::string& text) { criteria.max_mismatched = parse_mismatch_limit(text); },
      "How many elements may be off by more than the options above allow, or by more than the "
      "defaults",
      "N|P%");
  add_bound(app, "--max-mean-abs", criteria.max_mean_abs, "The greatest mean absolute error", "E");
  add_bound(app, "--max-rmse", criteria.max_rmse, "The greatest root mean square error", "E");
  add_parsed(
      app, "--min-cosine",
      [&](const std::string& text) { criteria.min_cosine = parse_cosine("--min-cosine", text); },
      "The least cosine similarity", "C");
  add_parsed(
      app, "--min-sqnr",
      [&](const std::string& text) { criteria.min_sqnr = parse_real("--min-sqnr", text); },
      "The least signal-to-quantization-noise ratio, in dB", "DB");
  app.add_flag_callback(
      "--no-equal-nan", [&] { criteria.equal_nan = false; }, "NaN does not equal NaN");
}

void add_specifications(CLI::App& app, PageArguments& page) {
  add_text(app, "--spec", page.specifications,
           "Write the page's figures into this folder, as Vega specifications", "DIR");
}

void add_compare(CLI::App& app, Parsed& parsed) {
  CompareArguments& arguments = parsed.compare_arguments;
  CLI::App& compare = add_command(
      app, parsed.compare, "compare",
      "Hold a tensor against another, element by element, or a file of tensors", kCompareExamples);
  if (!has_options(parsed.compare, parsed.only)) return;
  add_as(compare, arguments.as);
  add_rows(compare, arguments.rows);
  compare.option_defaults()->group("Criteria, of which all that are given must hold");
  add_criteria(compare, arguments);
  add_pairing(compare, arguments);
  compare.option_defaults()->group("Rows, of which those that differ are counted");
  add_axes(compare, [&](const NormalizedAxes& axes) { arguments.axes = axes; });
  compare.option_defaults()->group("Report");
  add_number(
      compare, "--worst", 0, 1000, [&](std::uint64_t worst) { arguments.worst = worst; },
      "How many of the worst elements are listed, or of the worst rows if axes are given (default "
      "5)");
  add_worst_by(compare, arguments.by);
  add_number(
      compare, "--max-diffs", 0, 1'000'000, [&](std::uint64_t most) { arguments.max_diffs = most; },
      "How many of the first mismatches are listed (default 0, in JSON 5)");
  compare.add_flag("--histogram", arguments.histogram,
                   "Draw how the distances in ulp are distributed");
  add_number(
      compare, "--linewidth", 1, 1'000'000,
      [&](std::uint64_t width) { arguments.linewidth = static_cast<int>(width); },
      "Characters a line of the text (default the terminal's width, elsewhere as many as it "
      "needs)");
  add_report(compare, arguments.report, "The report as JSON", "A line of CSV for every tensor");
  compare.add_flag("-q,--quiet", arguments.quiet, "No report, the exit status alone");
  add_parsed(
      compare, "--page", [&](const std::string& text) { arguments.page.path = text; },
      "Write a page to look at, in one HTML file", "PATH");
  add_specifications(compare, arguments.page);
  add_color(compare, arguments.color);
  add_work(compare, arguments.work);
}

void add_softmax(CLI::App& app, Parsed& parsed) {
  SoftmaxArguments& arguments = parsed.softmax_arguments;
  CLI::App& softmax =
      add_command(app, parsed.softmax, "softmax", "Softmax of every row", kSoftmaxExamples);
  if (!has_options(parsed.softmax, parsed.only)) return;
  softmax.option_defaults()->group("Axes");
  add_softmax_axes(softmax, [&](const NormalizedAxes& axes) { arguments.axes = axes; });
  add_input(softmax, arguments.input);
  add_output(softmax, arguments.output);
  add_work(softmax, arguments.work);
  add_print(softmax, arguments.output.print, kThresholdOfResults);
}

void add_grad(CLI::App& app, Parsed& parsed) {
  GradArguments& arguments = parsed.grad_arguments;
  CLI::App& grad =
      add_command(app, parsed.grad, "grad",
                  "The backward pass: gradients of input, weight and bias", kGradExamples);
  if (!has_options(parsed.grad, parsed.only)) return;
  grad.option_defaults()->group("Backward");
  add_parsed(
      grad, "--dy", [&](const std::string& text) { arguments.dy = text; },
      "The gradient of what lnorm apply writes: a tensor of the input's shape", "T");
  add_text(grad, "--mean", arguments.mean,
           "The rows' means as --save-mean writes them, in place of computed ones", "T");
  add_text(grad, "--rstd", arguments.rstd, "The same of 1/s, as --save-rstd writes it", "T");
  add_normalization(grad, arguments.normalization, Pass::backward);
  add_input(grad, arguments.input);
  grad.option_defaults()->group("Output");
  add_text(grad, "-o,--output,--dx", arguments.dx,
           "Where dx goes; - is standard output (default if no output is named)", "PATH");
  add_text(grad, "--dweight", arguments.dweight,
           "Where dweight goes, in the weight's shape and dtype", "PATH");
  add_text(grad, "--dbias", arguments.dbias, "The same of dbias", "PATH");
  add_output_format(grad, arguments.output);
  add_work(grad, arguments.work);
  add_print(grad, arguments.output.print, kThresholdOfResults);
}

void add_explain(CLI::App& app, Parsed& parsed) {
  ExplainArguments& arguments = parsed.explain_arguments;
  CLI::App& explain =
      add_command(app, parsed.explain, "explain",
                  "One row, step by step, with its numbers in the formula", kExplainExamples);
  if (!has_options(parsed.explain, parsed.only)) return;
  explain.option_defaults()->group("Row");
  add_parsed(
      explain, "--row", [&](const std::string& text) { arguments.row = parse_list("--row", text); },
      "Which row: its index along the axes that are not normalized; negative ones count from the "
      "end (default the first)",
      "I[,I...]");
  add_normalization(explain, arguments.normalization);
  add_input(explain, arguments.input);
  explain.option_defaults()->group("Report");
  add_number(
      explain, "--digits", 1, 17,
      [&](std::uint64_t digits) { arguments.digits = static_cast<int>(digits); },
      "Significant digits of the text (default 4)");
  explain.add_flag("--json", arguments.json, "The same as JSON, in full precision");
  add_color(explain, arguments.color);
  add_work(explain, arguments.work);
}

void add_report_page(CLI::App& app, Parsed& parsed) {
  ReportArguments& arguments = parsed.report_arguments;
  CLI::App& report = add_command(app, parsed.report, "report",
                                 "A page to look at, in one HTML file", kReportExamples);
  if (!has_options(parsed.report, parsed.only)) return;
  add_normalization(report, arguments.normalization);
  add_input(report, arguments.input);
  report.option_defaults()->group("Page");
  add_parsed(
      report, "-o,--output", [&](const std::string& text) { arguments.page.path = text; },
      "Where the page goes; - is standard output", "PATH");
  add_specifications(report, arguments.page);
  report.add_flag("--softmax", arguments.softmax, "What softmax makes of the same rows");
  report.add_flag("--all", arguments.all,
                  "A section for every tensor of many, not for the 50 that stand out most");
  add_work(report, arguments.work);
}

void add_show(CLI::App& app, Parsed& parsed) {
  ShowArguments& arguments = parsed.show_arguments;
  CLI::App& show = add_command(
      app, parsed.show, "show",
      "Print a tensor, as PyTorch prints it, or list the tensors of a file", kShowExamples);
  if (!has_options(parsed.show, parsed.only)) return;
  add_input(show, arguments.input);
  show.option_defaults()->group("Report");
  show.add_flag("--header", arguments.header,
                "Name, dtype and shape first (as always on a terminal)");
  add_report(show, arguments.report, "The list of tensors as JSON, sizes in bytes",
             "The list of tensors as CSV, sizes in bytes");
  add_color(show, arguments.color);
  add_threads(show, arguments.threads);
  add_progress(show, arguments.progress);
  add_print(show, arguments.print, "1000");
}

// --json=false and the like.
void refuse_flag_values(CLI::App& app) {
  for (CLI::Option* option :
       app.get_options([](const CLI::Option* o) { return o->get_expected_max() == 0; })) {
    option->disable_flag_override();
  }
}

std::string hint_of(const CLI::App& command) {
  return "lnorm " + command.get_name() + " --help lists the options";
}

bool is_file(const std::string& name) {
  return name == "-" || name.starts_with("-:") || os::status(name);
}

[[noreturn]] void fail_option(const CLI::App& command, const std::string& word) {
  throw Error(concat("there is no option ", printable(word)),
              is_file(word) ? concat("the file is ", shell_word("./" + word))
                            : hint_for_option(command, word));
}

// Whether a word is meant as an option wherever it stands: "--rms" and "-o", but not "-1" or "-inf".
bool looks_like_option(std::string_view word) {
  const auto is_letter = [&](std::size_t i) {
    return i < word.size() && std::isalpha(static_cast<unsigned char>(word[i])) != 0;
  };
  return word == "--" || (word.starts_with("--") && is_letter(2)) ||
         (word.starts_with('-') && word.size() == 2 && is_letter(1));
}

// Throws Error for a word behind an option, or behind its value, that cannot be an input: "--axes 1 2".
void refuse_stray_value(const CLI::Option& option, const std::string& name,
                        const std::string& value, const std::string& stray,
                        const std::string& help) {
  double number = 0;
  const bool is_value = parse_real(stray, number) || stray == "true" || stray == "false";
  if (!is_value || is_file(stray)) return;
  if (value.empty()) throw Error(concat(name, " takes no value, found ", stray), help);
  const std::string list = concat(value, ",", stray);
  const bool takes_list = option.get_type_name().find(',') != std::string::npos;
  throw Error(concat(name, " takes one value, found ", printable(value), " and ", stray),
              takes_list ? concat("a list is written ", shell_word(list))
              : name == "--rows"
                  ? concat("rows are written ", shell_word(concat(value, ':', stray)))
              : name == "--axis" ? concat("of several it is --axes ", shell_word(list))
                                 : help);
}

// What CLI11 would take for something else: "-output y.npy" for "-o utput", an option for another's value.
void check_words(const CLI::App& command, std::span<const char* const> argv,
                 const std::string& help) {
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const std::string word = argv[i];
    const auto next = [&](std::size_t distance) -> std::string {
      return i + distance < argv.size() ? argv[i + distance] : "";
    };
    if (word == "--") {
      for (const std::string file : argv.subspan(i + 1)) {
        if (looks_like_option(file) && command.get_option_no_throw(file) && !is_file(file)) {
          throw Error(concat("found ", file, " after --"), "options come before --");
        }
      }
      return;
    }
    if (lacks_dash(command, word)) fail_option(command, word);
    const CLI::Option* const option =
        word.starts_with('-') ? command.get_option_no_throw(word) : nullptr;
    if (option == nullptr) continue;
    if (option->get_expected_max() == 0) {
      refuse_stray_value(*option, word, "", next(1), help);
      continue;
    }
    if (looks_like_option(next(1))) {
      const std::string type = option->get_type_name();
      throw Error(concat(word, " takes a value, found ", printable(next(1))),
                  type == "PATH" || type == "T"
                      ? concat("a file of that name is ", shell_word("./" + next(1)))
                      : help);
    }
    if (!next(1).empty()) refuse_stray_value(*option, word, next(1), next(2), help);
    ++i;
  }
}

// Adds what CLI11 could not place to the words, in the order of the command line: "-:member", which
// it takes for an option. What remains are options that are not there.
void place_extras(const CLI::App& app, Command& command, std::span<const char* const> argv) {
  const auto position = [&](const std::string& word) {
    return std::find(argv.begin(), argv.end(), word) - argv.begin();
  };
  for (const std::string& word : app.remaining(true)) {
    if (word == "--") continue;
    if (word.starts_with('-') && word.size() > 1 && !word.starts_with("-:") &&
        position(word) < position("--")) {
      fail_option(*command.app, word);
    }
    command.words.push_back(word);
  }
  std::stable_sort(
      command.words.begin(), command.words.end(),
      [&](const std::string& a, const std::string& b) { return position(a) < position(b); });
}

// For a second name that is no file.
std::string hint_for_second(const CLI::App& command, const std::string& first,
                            const std::string& second) {
  const auto* const program = command.get_parent();
  if (find_command(*program, second) != nullptr) {
    return concat("the command comes first: lnorm ", second, ' ', shell_word(first));
  }
  const auto* const output = command.get_option_no_throw("-o");
  if (output == nullptr || output->count() > 0 || second.find(':') != second.npos) return "";
  return concat("-o ", shell_word(second), " writes there");
}

// The tensors that a command names; otherwise standard input.
void take_inputs(const Command& command, InputArguments& input) {
  const std::vector<std::string>& words = command.words;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string path = words[i].substr(0, words[i].rfind(':'));
    if (is_file(words[i]) || is_file(path)) continue;
    throw Error(concat("there is no file '", printable(words[i]), "', the ", i + 1,
                       i == 1   ? "nd"
                       : i == 2 ? "rd"
                                : "th",
                       " INPUT"),
                hint_for_second(*command.app, words[0], words[i]));
  }
  if (!words.empty()) input.names = words;
}

// An option that does nothing without one of some others, or beside one of them.
struct Effect {
  const char* option;
  std::vector<const char*> without;
  std::vector<const char*> beside = {};
  const char* but_with = nullptr;  // an option with which it does something in any case
};

void check_effects(const CLI::App& command) {
  static const std::vector<Effect> effects{
      {"--no-keepdim", {"--save-mean", "--save-rstd"}},
      {"--zero-centered-weight", {"--weight"}},
      {"--mean", {"--rstd"}, {"--rms"}},
      {"--eps", {}, {"--rstd"}},
      {"--eps-on", {}, {"--rstd"}},
      {"--save-sum", {"--residual"}},
      {"--all", {}, {"--json", "--csv"}},
      {"--digits", {}, {"--json", "--csv"}},
      {"--histogram", {}, {"--json", "--csv"}},
      {"--header", {}, {"--json", "--csv"}},
      {"--precision", {}, {"--json", "--csv"}},
      {"--threshold", {}, {"--json", "--csv"}},
      {"--edgeitems", {}, {"--json", "--csv"}},
      {"--linewidth", {}, {"--json", "--csv"}},
      {"--sci-mode", {}, {"--json", "--csv"}},
      {"--json", {}, {"--quiet"}},
      {"--csv", {}, {"--quiet"}},
  };
  static const std::vector<Effect> of_compare{
      {"--worst", {}, {"--quiet", "--csv"}, "--page"},
      {"--by", {}, {"--quiet", "--csv"}, "--page"},
      {"--max-diffs", {}, {"--quiet", "--csv"}, "--page"},
      {"--axis", {}, {"--quiet", "--csv"}, "--page"},
      {"--histogram", {}, {"--quiet"}},
      {"--linewidth", {}, {"--quiet"}},
      {"--axes", {}, {"--quiet", "--csv"}, "--page"},
      {"--normalized-shape", {}, {"--quiet", "--csv"}, "--page"},
      {"--spec", {"--page"}},
  };
  const auto is_given = [&](const char* name) {
    const CLI::Option* const option = command.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
  };
  for (const CLI::Option* const flag : command.get_options()) {
    if (flag->get_expected_max() == 0 && flag->count() > 1) {
      throw Error(concat(flag->get_name(), " is given twice, expected once"));
    }
  }
  const auto check = [&](const Effect& effect) {
    if (!is_given(effect.option)) return;
    std::string needed;
    for (const char* const other : effect.without) {
      needed += concat(needed.empty() ? "" : " or ", other);
    }
    if (!needed.empty() && std::none_of(effect.without.begin(), effect.without.end(), is_given)) {
      throw Error(concat(effect.option, " has no effect without ", needed));
    }
    if (effect.but_with != nullptr && is_given(effect.but_with)) return;
    for (const char* const other : effect.beside) {
      if (is_given(other)) throw Error(concat(effect.option, " has no effect beside ", other));
    }
  };
  std::for_each(effects.begin(), effects.end(), check);
  if (command.get_name() == "show") check({"--rows", {}, {"--json", "--csv"}});
  if (command.get_name() == "compare") std::for_each(of_compare.begin(), of_compare.end(), check);
}

void check_sum_rounding(const NormalizationArguments& normalization) {
  if (!normalization.round_sum || normalization.residual) return;
  throw Error("--round sum has no effect without --residual");
}

// A rounding of what is not there does nothing.
void check_rounding(const NormalizationArguments& normalization) {
  const Rounding& rounding = normalization.options.rounding;
  const bool has_weight = normalization.weight.has_value();
  const bool has_bias = normalization.bias.has_value();
  const auto check = [](const char* step, bool rounds, bool has_effect, const char* needed) {
    if (!rounds || has_effect) return;
    throw Error(concat("--round ", step, " has no effect without ", needed));
  };
  check_sum_rounding(normalization);
  check("xhat", rounding.xhat, has_weight || has_bias, "--weight or --bias");
  check("product", rounding.product, has_weight && has_bias, "--weight and --bias");
}

template <class Arguments>
int threads_of(const Arguments& arguments) {
  if constexpr (requires { arguments.work; }) {
    return arguments.work.threads;
  } else {
    return arguments.threads;
  }
}

// What a raw file does not tell must be told, and of no other file.
void check_raw(const CLI::App& command, const ReadOptions& options) {
  const auto is_given = [&](const char* name) { return command.get_option(name)->count() > 0; };
  const bool has_shape = is_given("--shape");
  if (options.from == Format::raw) {
    if (options.as && has_shape) return;
    throw Error("--from raw needs --as and --shape: the file does not tell its dtype and shape",
                concat(options.as ? "" : "--as float32", options.as || has_shape ? "" : " ",
                       has_shape ? "" : "--shape 2,3"));
  }
  const bool has_normalized_shape = command.get_option_no_throw("--normalized-shape") != nullptr;
  const bool has_bias = command.get_option_no_throw("--bias") != nullptr;
  for (const auto& [name, hint] : {
           std::pair{"--shape", has_normalized_shape ? kKeepsShape : ""},
           std::pair{"--offset", has_bias ? "what is added is --bias" : ""},
           std::pair{"--big-endian", ""},
       }) {
    if (!is_given(name)) continue;
    throw Error(concat(name, " has no effect without --from raw"),
                options.as && has_shape ? "--from raw" : hint);
  }
  if (options.as && is_npy_dtype(*options.as)) {
    throw Error(concat("--as ", name(*options.as),
                       " has no effect without --from raw: other files "
                       "tell their dtype, but for bfloat16 and float8 in an .npy"));
  }
}

// A name whose extension is none of a format that we write.
void check_extension(const std::string& option, const std::string& path,
                     const std::string& hint = "") {
  const std::string found = std::filesystem::path(path).extension().string();
  const auto format = format_of_extension(path);
  const bool is_read_only =
      format == Format::pb || (format == Format::npz && extension(path) != ".npz");
  if (found.size() <= 1 || (format && !is_read_only)) return;
  throw Error(
      concat(option, ' ', printable(path), ": ", printable(found),
             " is not written, expected .npy, .npz, .safetensors, .json, .jsonl, .ndjson or .txt"),
      hint);
}

void check_output(const OutputArguments& output) {
  if (!output.format) {
    check_extension("-o", output.path, "--to npy writes .npy there, whatever its name is");
  }
}

void check_grad(const Command& command, GradArguments& arguments) {
  if (arguments.dy.empty()) {
    const std::vector<std::string>& words = command.words;
    throw Error("grad needs --dy, the gradient of what lnorm apply writes",
                words.size() == 2
                    ? concat("lnorm grad ", shell_word(words[0]), " --dy ", shell_word(words[1]))
                    : hint_of(*command.app));
  }
  if (arguments.rstd && !arguments.mean && !arguments.normalization.options.formula.rms) {
    throw Error("--rstd needs --mean, but for --rms, which has none");
  }
  const Rounding& rounding = arguments.normalization.options.rounding;
  if (rounding.xhat || rounding.product) {
    throw Error(concat("--round ", rounding.xhat ? "xhat" : "product",
                       " has no part in the gradient, expected sum"));
  }
  check_sum_rounding(arguments.normalization);
  if (!arguments.dx && !arguments.dweight && !arguments.dbias) arguments.dx = "-";
  if (arguments.output.format) return;
  for (const auto& [option, path] : {std::pair{"--dx", &arguments.dx},
                                     {"--dweight", &arguments.dweight},
                                     {"--dbias", &arguments.dbias}}) {
    if (*path) {
      check_extension(option, **path, "--to npy writes .npy there, whatever its name is");
    }
  }
}

// Beside the report on standard output.
void check_page(const PageArguments& page) {
  if (page.path.empty()) return;
  if (page.path == "-") throw Error("--page takes a file: standard output has the report");
  check_page_extension("--page", page.path);
}

void take_both(const Command& command, CompareArguments& arguments) {
  if (command.words.size() != 2) {
    throw Error(
        concat("compare takes two tensors, ACTUAL and EXPECTED, found ", command.words.size()),
        hint_of(*command.app));
  }
  arguments.actual = command.words[0];
  arguments.expected = command.words[1];
}

// Prints what help asks for; returns the exit status.
int print_help(const CLI::App& app, const CLI::Success& help) {
  errno = 0;
  app.exit(help);
  std::cout.flush();
  if (std::cout.good() || errno == EPIPE) return 0;
  return print_error(concat("standard output: ", std::strerror(errno)));
}

constexpr std::array kCommands{"apply", "stats",   "compare", "softmax",
                               "grad",  "explain", "report",  "show"};

bool names_command(std::span<const char* const> argv) {
  return !argv.empty() && std::find(kCommands.begin(), kCommands.end(),
                                    std::string_view(argv[0])) != kCommands.end();
}

bool asks_for_help(std::string_view word) { return word == "--help" || word == "-h"; }

bool generates(std::span<const char* const> argv) {
  return !argv.empty() && std::string_view(argv[0]) == "--generate";
}

// "lnorm x.npy" means "lnorm apply x.npy".
std::vector<std::string> with_command(const CLI::App& program, std::span<const char* const> argv) {
  std::vector<std::string> words(argv.begin(), argv.end());
  for (std::string& word : words) {
    if (word == "--") break;
    if (word.starts_with("-o=")) word.replace(0, 2, "--output");  // or CLI11 takes "=" for a part
  }
  const std::string first = words.empty() ? "" : words.front();
  if (asks_for_help(first) && words.size() > 1 && !words[1].starts_with('-')) {
    throw Error(concat("there is no command '", printable(words[1]), "'"),
                hint_for_command(program, words[1]));
  }
  if (!names_command(argv) && !asks_for_help(first) && first != "--version" && first != "-V") {
    // Whatever else it is, it is no path.
    const bool is_word =
        !first.empty() && first[0] != '-' && first.find_first_of("./:[{(") == first.npos;
    if (is_word && !is_file(first)) {
      throw Error(concat("there is neither a command nor a file '", printable(first), "'"),
                  first == "help" && names_command(argv.subspan(1))
                      ? concat("here it is lnorm ", argv[1], " --help")
                      : hint_for_command(program, first));
    }
    words.insert(words.begin(), "apply");
  }
  return {words.rbegin(), words.rend()};  // CLI11 takes them from the back
}

std::string version(const Program& program) {
  return concat(program.name, " " LNORM_VERSION "\nkernel ", kernels().front().name,
                ", the best of this machine\nbuilt with " LNORM_LIBRARIES);
}

// only: as in Parsed.
Arguments parse(std::span<const char* const> words, std::string_view only, const Program& program) {
  Parsed parsed;
  parsed.only = only;
  CLI::App app{program.overview, program.name};
  app.set_version_flag("-V,--version", [&] { return version(program); });
  app.footer(program.name + " COMMAND --help lists the options of a command.\n\n" +
             program.examples);
  app.require_subcommand(1);
  app.allow_extras();
  app.formatter(std::make_shared<HelpFormatter>(program.launcher));
  add_apply(app, parsed);
  add_stats(app, parsed);
  add_compare(app, parsed);
  add_softmax(app, parsed);
  add_grad(app, parsed);
  add_explain(app, parsed);
  add_report_page(app, parsed);
  add_show(app, parsed);
  if (generates(words)) return Done{generate(app, words.subspan(1))};
  const auto chosen = [&]() -> Command& {
    for (Command* command : {&parsed.stats, &parsed.compare, &parsed.softmax, &parsed.grad,
                             &parsed.explain, &parsed.report, &parsed.show}) {
      if (command->app->parsed()) return *command;
    }
    return parsed.apply;
  };
  try {
    for (const Command* command : {&parsed.apply, &parsed.stats, &parsed.compare, &parsed.softmax,
                                   &parsed.grad, &parsed.explain, &parsed.report, &parsed.show}) {
      refuse_flag_values(*command->app);
    }
    std::vector<std::string> reversed = with_command(app, words);
    const CLI::App* const command = find_command(app, reversed.back());
    if (command != nullptr) check_words(*command, words, hint_of(*command));
    app.parse(std::move(reversed));
  } catch (const CLI::Success& help) {
    return Done{print_help(app, help)};
  } catch (const CLI::ArgumentMismatch& error) {
    std::string name = error.what();
    const bool flag = name.find("flag override") != std::string::npos;
    name.erase(name.find_first_of(": "));
    if (flag) name.insert(0, name.size() == 1 ? "-" : "--");  // CLI11 gives it without
    throw Error(name + (flag ? " takes no value" : " takes one value, found none"),
                hint_of(*chosen().app));
  } catch (const CLI::ParseError& error) {
    throw Error(error.what(), hint_of(*chosen().app));
  }
  Command& command = chosen();
  place_extras(app, command, words);
  check_effects(*command.app);
  if (&command == &parsed.compare) {
    check_page(parsed.compare_arguments.page);
    take_both(command, parsed.compare_arguments);
    return parsed.compare_arguments;
  }
  if (command.words.empty() && os::is_terminal(os::FileDescriptor(STDIN_FILENO, false))) {
    const HelpFormatter formatter(program.launcher);
    const CLI::App& shown = words.empty() ? app : *command.app;
    std::cerr << program.overview << '\n'
              << formatter.make_usage(&shown, "")
              << (words.empty() ? formatter.make_subcommands(&app, CLI::AppFormatMode::Normal) : "")
              << '\n'
              << shown.get_footer() << '\n';
    return Done{2};
  }
  const auto with_input = [&](auto& arguments) -> Arguments {
    check_raw(*command.app, arguments.input.options);
    take_inputs(command, arguments.input);
    arguments.input.options.in_parallel = in_parallel(threads_of(arguments));
    return arguments;
  };
  if (&command == &parsed.stats) {
    check_rounding(parsed.stats_arguments.normalization);
    return with_input(parsed.stats_arguments);
  }
  if (&command == &parsed.softmax) {
    check_output(parsed.softmax_arguments.output);
    return with_input(parsed.softmax_arguments);
  }
  if (&command == &parsed.grad) {
    check_grad(command, parsed.grad_arguments);
    return with_input(parsed.grad_arguments);
  }
  if (&command == &parsed.explain) {
    check_rounding(parsed.explain_arguments.normalization);
    if (parsed.explain_arguments.row && parsed.explain_arguments.input.rows) {
      throw Error("found both --row and --rows, expected one of them");
    }
    return with_input(parsed.explain_arguments);
  }
  if (&command == &parsed.show) return with_input(parsed.show_arguments);
  if (&command == &parsed.report) {
    check_rounding(parsed.report_arguments.normalization);
    check_page_extension("-o", parsed.report_arguments.page.path);
    return with_input(parsed.report_arguments);
  }
  const ApplyArguments& arguments = parsed.apply_arguments;
  check_rounding(arguments.normalization);
  check_output(arguments.output);
  if (arguments.save_mean) check_extension("--save-mean", *arguments.save_mean);
  if (arguments.save_rstd) check_extension("--save-rstd", *arguments.save_rstd);
  if (arguments.save_sum) check_extension("--save-sum", *arguments.save_sum);
  return with_input(parsed.apply_arguments);
}

}  // namespace

const Program kLnorm{"lnorm", "",
                     "lnorm normalizes tensors over any of their axes: exact, in any pipe.\n",
                     std::string(kExamples)};

Arguments parse_arguments(int argc, const char* const* argv, const Program& program) {
  std::vector<const char*> words(argv + std::min(argc, 1), argv + argc);
  if (words.size() > 1 && asks_for_help(words[0]) && names_command({&words[1], 1})) {
    std::swap(words[0], words[1]);
  }
  if (generates(words)) return parse(words, {}, program);
  try {
    // CLI11 takes as long to set up the options of all commands as the work on a small tensor takes.
    return parse(words, names_command(words) ? words[0] : "apply", program);
  } catch (const Error&) {
    // Once more: what an error hints at may be an option of another command.
    return parse(words, {}, program);
  }
}

}  // namespace lnorm::app
