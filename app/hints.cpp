#include "hints.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "lnorm/core/nearest.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

struct Foreign {
  std::string_view word;  // of another tool: lower case, dashes between words
  std::string_view
      option;  // ours; the row is for commands that have it. The last row of a word is for all others
  std::string_view hint;  // in place of "here it is OPTION"
};

constexpr std::string_view kKept =
    "mean and rstd keep the normalized axes as 1; --no-keepdim drops them";
constexpr std::string_view kNoAffine = "without --weight and --bias there are none";
constexpr std::string_view kComputed =
    "apply computes them: --save-mean and --save-rstd write them, lnorm grad takes them as --mean "
    "and --rstd";
constexpr std::string_view kReported = "the report has the mean and variance of every row";
constexpr std::string_view kShapeOfRaw = "a tensor keeps its shape; --shape is that of --from raw";
constexpr std::string_view kTolerances =
    "the tolerances, --rtol and --atol, are options of lnorm compare";
constexpr std::string_view kFirstRows = "the first 5 rows are --rows :5";
constexpr std::string_view kEveryRow = "lnorm stats --csv has every row, for sort to pick from";
constexpr std::string_view kOfStats = "lnorm stats has the mean and variance of every row";
constexpr std::string_view kExplained = "explain computes them, and shows how";
constexpr std::string_view kPageOutput = "the page goes to -o report.html";
constexpr std::string_view kPattern = "FILE:PATTERN chooses tensors, 'x.npz:h.*' for instance";
constexpr std::string_view kFitsTerminal = "the report is as wide as the terminal, or 80 columns";
constexpr std::string_view kRstd = "--save-rstd writes rstd, which is 1 / std";
constexpr std::string_view kNoBias = "dbias does not depend on bias, and neither do the others";
constexpr std::string_view kWithoutOption = "an input is named without an option: lnorm x.npy";

// As users of PyTorch, NumPy, JAX, ONNX and other command lines would say it.
constexpr std::array kForeign{
    Foreign{"dim", "--ddof", "here it is --axes, or --axis for the first of several"},
    Foreign{"dim", "--rtol", "here it is --axes, or --axis for the first of several"},
    Foreign{"dim", "--axis", "here it is --axis, or --axes for several"},
    Foreign{"dims", "--axes", ""},
    Foreign{"dimension", "--axes", ""},
    Foreign{"dimensions", "--axes", ""},
    Foreign{"reduction-axes", "--axes", ""},
    Foreign{"feature-axes", "--axes", ""},
    Foreign{"begin-norm-axis", "--axis", ""},
    Foreign{"start-axis", "--axis", ""},
    Foreign{"shape", "--rtol", kKeepsShape},
    Foreign{"shape", "--normalized-shape", ""},
    Foreign{"norm-shape", "--normalized-shape", ""},
    Foreign{"reshape", "--axes", kKeepsShape},
    Foreign{"reshape", "--shape", kShapeOfRaw},
    Foreign{"view", "--axes", kKeepsShape},
    Foreign{"view", "--shape", kShapeOfRaw},
    Foreign{"unsqueeze", "--axes", kKeepsShape},
    Foreign{"unsqueeze", "--shape", kShapeOfRaw},
    Foreign{"flatten", "--axes", kKeepsShape},
    Foreign{"flatten", "--shape", kShapeOfRaw},
    Foreign{"ravel", "--axes", kKeepsShape},
    Foreign{"ravel", "--shape", kShapeOfRaw},
    Foreign{"expand", "--axes", kKeepsShape},
    Foreign{"expand", "--shape", kShapeOfRaw},
    Foreign{"permute", "--axes", kKeepsShape},
    Foreign{"permute", "--shape", kShapeOfRaw},
    Foreign{"transpose", "--axes", kKeepsShape},
    Foreign{"transpose", "--shape", kShapeOfRaw},
    Foreign{"epsilon", "--eps", ""},
    Foreign{"e", "--eps", ""},
    Foreign{"norm-eps", "--eps", ""},
    Foreign{"layer-norm-eps", "--eps", ""},
    Foreign{"layer-norm-epsilon", "--eps", ""},
    Foreign{"rms-norm-eps", "--eps", ""},
    Foreign{"variance-epsilon", "--eps", ""},
    Foreign{"correction", "--ddof", ""},
    Foreign{"biased", "--unbiased", "biased is the default: the variance divides by n"},
    Foreign{"bessel", "--unbiased", ""},
    Foreign{"sample", "--unbiased", ""},
    Foreign{"w", "--weight", ""},
    Foreign{"b", "--bias", ""},
    Foreign{"elementwise-affine", "--help", kNoAffine},
    Foreign{"no-elementwise-affine", "--help", kNoAffine},
    Foreign{"no-affine", "--help", kNoAffine},
    Foreign{"no-weight", "--help", kNoAffine},
    Foreign{"no-bias", "--help", kNoAffine},
    Foreign{"use-scale", "--help", kNoAffine},
    Foreign{"use-bias", "--help", kNoAffine},
    Foreign{"rmsnorm", "--rms", ""},
    Foreign{"rms-norm", "--rms", ""},
    Foreign{"zero-centered-gamma", "--zero-centered-weight", ""},
    Foreign{"add-unit-offset", "--zero-centered-weight", ""},
    Foreign{"unit-offset", "--zero-centered-weight", ""},
    Foreign{"keepdim", "--no-keepdim", kKept},
    Foreign{"keepdims", "--no-keepdim", kKept},
    Foreign{"no-keepdims", "--no-keepdim", ""},
    Foreign{"squeeze", "--no-keepdim", ""},
    Foreign{"squeeze", "--axes", kKeepsShape},
    Foreign{"squeeze", "--shape", kShapeOfRaw},
    Foreign{"out", "-o", ""},
    Foreign{"outfile", "-o", ""},
    Foreign{"out-file", "-o", ""},
    Foreign{"output-file", "-o", ""},
    Foreign{"save", "-o", ""},
    Foreign{"dest", "-o", ""},
    Foreign{"in", "--help", kWithoutOption},
    Foreign{"input", "--help", kWithoutOption},
    Foreign{"input-file", "--help", kWithoutOption},
    Foreign{"file", "--help", kWithoutOption},
    Foreign{"i", "--help", kWithoutOption},
    Foreign{"x", "--help", kWithoutOption},
    Foreign{"f", "--help", kWithoutOption},
    Foreign{"json", "--to", "here it is --to json"},
    Foreign{"jsonl", "--to", "here it is --to jsonl"},
    Foreign{"npy", "--to", "here it is --to npy"},
    Foreign{"safetensors", "--to", "here it is --to safetensors"},
    Foreign{"text", "--to", "here it is --to text"},
    Foreign{"txt", "--to", "here it is --to text"},
    Foreign{"to", "--csv", "here it is --json, or --csv"},
    Foreign{"to", "--json", ""},
    Foreign{"to", "--spec", kPageOutput},
    Foreign{"page", "--spec", kPageOutput},
    Foreign{"html", "--page", ""},
    Foreign{"html", "--spec", kPageOutput},
    Foreign{"format", "--to", ""},
    Foreign{"format", "--csv", "here it is --json, or --csv"},
    Foreign{"format", "--json", ""},
    Foreign{"output-format", "--to", ""},
    Foreign{"output-format", "--json", ""},
    Foreign{"out-format", "--to", ""},
    Foreign{"raw", "--from", "here it is --from raw"},
    Foreign{"input-format", "--from", ""},
    Foreign{"in-format", "--from", ""},
    Foreign{"endian", "--big-endian", ""},
    Foreign{"byte-order", "--big-endian", ""},
    Foreign{"type", "--dtype", ""},
    Foreign{"out-dtype", "--dtype", ""},
    Foreign{"output-dtype", "--dtype", ""},
    Foreign{"cast", "--dtype", ""},
    Foreign{"mean", "--softmax", kReported},
    Foreign{"mean", "--header", kOfStats},
    Foreign{"mean", "--row", kExplained},
    Foreign{"mean", "--save-mean", kComputed},
    Foreign{"mu", "--softmax", kReported},
    Foreign{"mu", "--mean", ""},
    Foreign{"mu", "--save-mean", kComputed},
    Foreign{"rstd", "--softmax", kReported},
    Foreign{"rstd", "--header", kOfStats},
    Foreign{"rstd", "--row", kExplained},
    Foreign{"rstd", "--save-rstd", kComputed},
    Foreign{"inv-std", "--softmax", kReported},
    Foreign{"inv-std", "--save-rstd", kComputed},
    Foreign{"inv-std-dev", "--softmax", kReported},
    Foreign{"inv-std-dev", "--save-rstd", kComputed},
    Foreign{"invstddev", "--softmax", kReported},
    Foreign{"invstddev", "--save-rstd", kComputed},
    Foreign{"rsigma", "--softmax", kReported},
    Foreign{"rsigma", "--save-rstd", kComputed},
    Foreign{"std", "--softmax", kReported},
    Foreign{"std", "--save-rstd", kRstd},
    Foreign{"save-std", "--save-rstd", kRstd},
    Foreign{"bias", "--dbias", kNoBias},
    Foreign{"beta", "--dbias", kNoBias},
    Foreign{"shift", "--dbias", kNoBias},
    Foreign{"grad", "--dy", ""},
    Foreign{"dout", "--dy", ""},
    Foreign{"grad-out", "--dy", ""},
    Foreign{"grad-output", "--dy", ""},
    Foreign{"upstream", "--dy", ""},
    Foreign{"dinput", "--dx", ""},
    Foreign{"grad-input", "--dx", ""},
    Foreign{"dw", "--dweight", ""},
    Foreign{"dgamma", "--dweight", ""},
    Foreign{"dscale", "--dweight", ""},
    Foreign{"grad-weight", "--dweight", ""},
    Foreign{"db", "--dbias", ""},
    Foreign{"dbeta", "--dbias", ""},
    Foreign{"dshift", "--dbias", ""},
    Foreign{"grad-bias", "--dbias", ""},
    Foreign{"inv-std", "--rstd", ""},
    Foreign{"inv-std-dev", "--rstd", ""},
    Foreign{"invstddev", "--rstd", ""},
    Foreign{"invvar", "--rstd", ""},
    Foreign{"invvar", "--save-rstd", kComputed},
    Foreign{"rsigma", "--rstd", ""},
    Foreign{"row", "--rows", "here it is --rows, of one row --rows 3:4"},
    Foreign{"range", "--rows", ""},
    Foreign{"row-range", "--rows", ""},
    Foreign{"slice", "--rows", ""},
    Foreign{"nrows", "--rows", kFirstRows},
    Foreign{"n", "--rows", kFirstRows},
    Foreign{"head", "--rows", kFirstRows},
    Foreign{"limit", "--rows", kFirstRows},
    Foreign{"tail", "--rows", "the last 5 rows are --rows -5:"},
    Foreign{"top", "--worst", ""},
    Foreign{"top", "--histogram", kEveryRow},
    Foreign{"top", "--rows", kFirstRows},
    Foreign{"worst", "--histogram", kEveryRow},
    Foreign{"by", "--histogram", kEveryRow},
    Foreign{"sort", "--by", ""},
    Foreign{"sort", "--help", kEveryRow},
    Foreign{"sort-by", "--by", ""},
    Foreign{"sort-by", "--help", kEveryRow},
    Foreign{"skiprows", "--rows", "all from the 5th on are --rows 5:"},
    Foreign{"index", "--row", ""},
    Foreign{"backend", "--kernel", ""},
    Foreign{"impl", "--kernel", ""},
    Foreign{"isa", "--kernel", ""},
    Foreign{"j", "--threads", ""},
    Foreign{"jobs", "--threads", ""},
    Foreign{"nthreads", "--threads", ""},
    Foreign{"num-threads", "--threads", ""},
    Foreign{"workers", "--threads", ""},
    Foreign{"tol", "--rtol", "here they are --rtol and --atol"},
    Foreign{"tol", "--help", kTolerances},
    Foreign{"rel", "--rtol", ""},
    Foreign{"rel-tol", "--rtol", ""},
    Foreign{"relative", "--rtol", ""},
    Foreign{"abs", "--atol", ""},
    Foreign{"abs-tol", "--atol", ""},
    Foreign{"absolute", "--atol", ""},
    Foreign{"ulp", "--max-ulp", ""},
    Foreign{"ulps", "--max-ulp", ""},
    Foreign{"nulp", "--max-ulp", ""},
    Foreign{"equal-nan", "--no-equal-nan", "NaN equals NaN, unless --no-equal-nan is given"},
    Foreign{"silent", "--quiet", ""},
    Foreign{"s", "--quiet", ""},
    Foreign{"max-mismatches", "--max-diffs", ""},
    Foreign{"include", "--only", ""},
    Foreign{"include", "--keep-going", kPattern},
    Foreign{"filter", "--only", ""},
    Foreign{"filter", "--keep-going", kPattern},
    Foreign{"only", "--keep-going", kPattern},
    Foreign{"exclude", "--skip", ""},
    Foreign{"ignore", "--skip", ""},
    Foreign{"map", "--rename", ""},
    Foreign{"intersection", "--common", ""},
    Foreign{"hist", "--histogram", ""},
    Foreign{"bins", "--histogram", "here it is --histogram, which chooses its bars"},
    Foreign{"width", "--linewidth", ""},
    Foreign{"width", "--digits", kFitsTerminal},
    Foreign{"linewidth", "--digits", kFitsTerminal},
    Foreign{"max-diff", "--max-abs", "here it is --max-abs; --max-diffs is how many are listed"},
    Foreign{"precision", "--digits", ""},
    Foreign{"digits", "--precision", ""},
    Foreign{"suppress", "--sci-mode", "here it is --sci-mode off"},
    Foreign{"v", "--verbose", ""},
};

struct ForeignCommand {
  std::string_view word;
  std::string_view command;
};

constexpr std::array kForeignCommands{ForeignCommand{"layernorm", "apply"},
                                      ForeignCommand{"layer-norm", "apply"},
                                      ForeignCommand{"norm", "apply"},
                                      ForeignCommand{"normalize", "apply"},
                                      ForeignCommand{"normalise", "apply"},
                                      ForeignCommand{"rmsnorm", "apply --rms"},
                                      ForeignCommand{"rms-norm", "apply --rms"},
                                      ForeignCommand{"run", "apply"},
                                      ForeignCommand{"backward", "grad"},
                                      ForeignCommand{"bwd", "grad"},
                                      ForeignCommand{"backprop", "grad"},
                                      ForeignCommand{"gradient", "grad"},
                                      ForeignCommand{"vjp", "grad"},
                                      ForeignCommand{"trace", "explain"},
                                      ForeignCommand{"walkthrough", "explain"},
                                      ForeignCommand{"steps", "explain"},
                                      ForeignCommand{"step-by-step", "explain"},
                                      ForeignCommand{"teach", "explain"},
                                      ForeignCommand{"isclose", "compare"},
                                      ForeignCommand{"assert-close", "compare"},
                                      ForeignCommand{"assert-allclose", "compare"},
                                      ForeignCommand{"diff", "compare"},
                                      ForeignCommand{"cmp", "compare"},
                                      ForeignCommand{"allclose", "compare"},
                                      ForeignCommand{"check", "compare"},
                                      ForeignCommand{"verify", "compare"},
                                      ForeignCommand{"print", "show"},
                                      ForeignCommand{"cat", "show"},
                                      ForeignCommand{"info", "show"},
                                      ForeignCommand{"ls", "show"},
                                      ForeignCommand{"list", "show"},
                                      ForeignCommand{"view", "show"},
                                      ForeignCommand{"head", "show"},
                                      ForeignCommand{"dump", "show"},
                                      ForeignCommand{"inspect", "show"},
                                      ForeignCommand{"summary", "stats"},
                                      ForeignCommand{"describe", "stats"},
                                      ForeignCommand{"statistics", "stats"},
                                      ForeignCommand{"hist", "stats"},
                                      ForeignCommand{"histogram", "stats"},
                                      ForeignCommand{"help", "--help"},
                                      ForeignCommand{"version", "--version"}};

// "--layer_norm_eps=1" is "layer-norm-eps".
std::string canonical(std::string_view word) {
  word = word.substr(0, word.find('='));
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string result = lower_case(word);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

// Without dashes.
std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    const auto& own = option->get_lnames();
    names.insert(names.end(), own.begin(), own.end());
  }
  return names;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const Foreign* find_foreign(const CLI::App& command, const std::string& word) {
  const auto* found = std::find_if(kForeign.begin(), kForeign.end(), [&](const Foreign& foreign) {
    return foreign.word == word &&
           command.get_option_no_throw(std::string(foreign.option)) != nullptr;
  });
  return found == kForeign.end() ? nullptr : found;
}

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

// "lnorm stats", "lnorm apply, stats and softmax"; empty if no command has the option.
std::string commands_with(const CLI::App& program, const std::string& option) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(program)) {
    if (command->get_option_no_throw(option) != nullptr) names.push_back(command->get_name());
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "lnorm " : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

// Whether other commands write their output to what the word names.
bool names_output(const std::string& name) {
  return name == "o" || name == "output" ||
         std::any_of(kForeign.begin(), kForeign.end(), [&](const Foreign& foreign) {
           return foreign.word == name && foreign.option == "-o";
         });
}

std::string is_an_option(const CLI::App& program, const std::string& option) {
  return concat(option, " is an option of ", commands_with(program, option));
}

// For a command that has none of the options that a word may stand for: the last of them.
const Foreign* last_foreign(const std::string& name) {
  const auto found = std::find_if(kForeign.rbegin(), kForeign.rend(),
                                  [&](const Foreign& foreign) { return foreign.word == name; });
  return found == kForeign.rend() ? nullptr : &*found;
}

std::vector<std::string> options_of_all(const CLI::App& program) {
  std::vector<std::string> options;
  for (const CLI::App* command : commands_of(program)) {
    const auto own = long_options(*command);
    options.insert(options.end(), own.begin(), own.end());
  }
  return options;
}

}  // namespace

const CLI::App* find_command(const CLI::App& program, const std::string& name) {
  const auto commands = commands_of(program);
  const auto found = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* command) {
    return command->get_name() == name;
  });
  return found == commands.end() ? nullptr : *found;
}

std::string hint_for_option(const CLI::App& command, const std::string& word) {
  const std::string name = canonical(word);
  const std::vector<std::string> own = long_options(command);
  if (contains(own, name)) return concat("did you mean --", name, "?");
  if (const Foreign* const foreign = find_foreign(command, name)) {
    return foreign->hint.empty() ? concat("here it is ", foreign->option)
                                 : std::string(foreign->hint);
  }
  if (names_output(name)) {
    return command.get_option_no_throw("--page") == nullptr
               ? "the result goes to standard output: > FILE"
               : "the report goes to standard output: > FILE; --page writes a page";
  }
  const CLI::App& program = *command.get_parent();
  const std::string option = concat(name.size() == 1 ? "-" : "--", name);
  if (!commands_with(program, option).empty()) return is_an_option(program, option);
  if (const Foreign* const foreign = last_foreign(name)) {
    return is_an_option(program, std::string(foreign->option));
  }
  std::vector<std::string> candidates = own;
  candidates.emplace_back("version");
  const std::string near = nearest(name, candidates);
  if (near == "version") return "lnorm --version";  // of the program, not of a command
  if (!near.empty()) return concat("did you mean --", near, "?");
  const std::string elsewhere = nearest(name, options_of_all(program), Nearness::strict);
  if (!elsewhere.empty()) return is_an_option(program, concat("--", elsewhere));
  return concat("lnorm ", command.get_name(), " --help lists the options");
}

bool lacks_dash(const CLI::App& command, const std::string& word) {
  if (word.size() < 3 || word[0] != '-' || word[1] == '-' || word == "-help") return false;
  const std::string name = canonical(word);
  return contains(long_options(command), name) || find_foreign(command, name) != nullptr;
}

std::string hint_for_command(const CLI::App& program, const std::string& word) {
  const std::string name = canonical(word);
  const auto* foreign =
      std::find_if(kForeignCommands.begin(), kForeignCommands.end(),
                   [&](const ForeignCommand& command) { return command.word == name; });
  if (foreign != kForeignCommands.end()) return concat("here it is lnorm ", foreign->command);
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(program)) names.push_back(command->get_name());
  const std::string near = nearest(name, names);
  return near.empty() ? "lnorm --help lists the commands"
                      : concat("did you mean lnorm ", near, "?");
}

}  // namespace lnorm::app
