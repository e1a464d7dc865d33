#include "hints.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "lnorm/core/nearest.hpp"
#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

struct Alias {
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
constexpr std::array kAliases{
    Alias{"dim", "--ddof", "here it is --axes, or --axis for the first of several"},
    Alias{"dim", "--rtol", "here it is --axes, or --axis for the first of several"},
    Alias{"dim", "--axis", "here it is --axis, or --axes for several"},
    Alias{"dims", "--axes", ""},
    Alias{"dimension", "--axes", ""},
    Alias{"dimensions", "--axes", ""},
    Alias{"reduction-axes", "--axes", ""},
    Alias{"feature-axes", "--axes", ""},
    Alias{"begin-norm-axis", "--axis", ""},
    Alias{"start-axis", "--axis", ""},
    Alias{"shape", "--rtol", kKeepsShape},
    Alias{"shape", "--normalized-shape", ""},
    Alias{"norm-shape", "--normalized-shape", ""},
    Alias{"reshape", "--axes", kKeepsShape},
    Alias{"reshape", "--shape", kShapeOfRaw},
    Alias{"view", "--axes", kKeepsShape},
    Alias{"view", "--shape", kShapeOfRaw},
    Alias{"unsqueeze", "--axes", kKeepsShape},
    Alias{"unsqueeze", "--shape", kShapeOfRaw},
    Alias{"flatten", "--axes", kKeepsShape},
    Alias{"flatten", "--shape", kShapeOfRaw},
    Alias{"ravel", "--axes", kKeepsShape},
    Alias{"ravel", "--shape", kShapeOfRaw},
    Alias{"expand", "--axes", kKeepsShape},
    Alias{"expand", "--shape", kShapeOfRaw},
    Alias{"permute", "--axes", kKeepsShape},
    Alias{"permute", "--shape", kShapeOfRaw},
    Alias{"transpose", "--axes", kKeepsShape},
    Alias{"transpose", "--shape", kShapeOfRaw},
    Alias{"epsilon", "--eps", ""},
    Alias{"e", "--eps", ""},
    Alias{"norm-eps", "--eps", ""},
    Alias{"layer-norm-eps", "--eps", ""},
    Alias{"layer-norm-epsilon", "--eps", ""},
    Alias{"rms-norm-eps", "--eps", ""},
    Alias{"variance-epsilon", "--eps", ""},
    Alias{"correction", "--ddof", ""},
    Alias{"biased", "--unbiased", "biased is the default: the variance divides by n"},
    Alias{"bessel", "--unbiased", ""},
    Alias{"sample", "--unbiased", ""},
    Alias{"w", "--weight", ""},
    Alias{"b", "--bias", ""},
    Alias{"elementwise-affine", "--help", kNoAffine},
    Alias{"no-elementwise-affine", "--help", kNoAffine},
    Alias{"no-affine", "--help", kNoAffine},
    Alias{"no-weight", "--help", kNoAffine},
    Alias{"no-bias", "--help", kNoAffine},
    Alias{"use-scale", "--help", kNoAffine},
    Alias{"use-bias", "--help", kNoAffine},
    Alias{"rmsnorm", "--rms", ""},
    Alias{"rms-norm", "--rms", ""},
    Alias{"zero-centered-gamma", "--zero-centered-weight", ""},
    Alias{"add-unit-offset", "--zero-centered-weight", ""},
    Alias{"unit-offset", "--zero-centered-weight", ""},
    Alias{"keepdim", "--no-keepdim", kKept},
    Alias{"keepdims", "--no-keepdim", kKept},
    Alias{"no-keepdims", "--no-keepdim", ""},
    Alias{"squeeze", "--no-keepdim", ""},
    Alias{"squeeze", "--axes", kKeepsShape},
    Alias{"squeeze", "--shape", kShapeOfRaw},
    Alias{"out", "-o", ""},
    Alias{"outfile", "-o", ""},
    Alias{"out-file", "-o", ""},
    Alias{"output-file", "-o", ""},
    Alias{"save", "-o", ""},
    Alias{"dest", "-o", ""},
    Alias{"in", "--help", kWithoutOption},
    Alias{"input", "--help", kWithoutOption},
    Alias{"input-file", "--help", kWithoutOption},
    Alias{"file", "--help", kWithoutOption},
    Alias{"i", "--help", kWithoutOption},
    Alias{"x", "--help", kWithoutOption},
    Alias{"f", "--help", kWithoutOption},
    Alias{"json", "--to", "here it is --to json"},
    Alias{"jsonl", "--to", "here it is --to jsonl"},
    Alias{"npy", "--to", "here it is --to npy"},
    Alias{"safetensors", "--to", "here it is --to safetensors"},
    Alias{"text", "--to", "here it is --to text"},
    Alias{"txt", "--to", "here it is --to text"},
    Alias{"to", "--csv", "here it is --json, or --csv"},
    Alias{"to", "--json", ""},
    Alias{"to", "--spec", kPageOutput},
    Alias{"page", "--spec", kPageOutput},
    Alias{"html", "--page", ""},
    Alias{"html", "--spec", kPageOutput},
    Alias{"format", "--to", ""},
    Alias{"format", "--csv", "here it is --json, or --csv"},
    Alias{"format", "--json", ""},
    Alias{"output-format", "--to", ""},
    Alias{"output-format", "--json", ""},
    Alias{"out-format", "--to", ""},
    Alias{"raw", "--from", "here it is --from raw"},
    Alias{"input-format", "--from", ""},
    Alias{"in-format", "--from", ""},
    Alias{"endian", "--big-endian", ""},
    Alias{"byte-order", "--big-endian", ""},
    Alias{"type", "--dtype", ""},
    Alias{"out-dtype", "--dtype", ""},
    Alias{"output-dtype", "--dtype", ""},
    Alias{"cast", "--dtype", ""},
    Alias{"mean", "--softmax", kReported},
    Alias{"mean", "--header", kOfStats},
    Alias{"mean", "--row", kExplained},
    Alias{"mean", "--save-mean", kComputed},
    Alias{"mu", "--softmax", kReported},
    Alias{"mu", "--mean", ""},
    Alias{"mu", "--save-mean", kComputed},
    Alias{"rstd", "--softmax", kReported},
    Alias{"rstd", "--header", kOfStats},
    Alias{"rstd", "--row", kExplained},
    Alias{"rstd", "--save-rstd", kComputed},
    Alias{"inv-std", "--softmax", kReported},
    Alias{"inv-std", "--save-rstd", kComputed},
    Alias{"inv-std-dev", "--softmax", kReported},
    Alias{"inv-std-dev", "--save-rstd", kComputed},
    Alias{"invstddev", "--softmax", kReported},
    Alias{"invstddev", "--save-rstd", kComputed},
    Alias{"rsigma", "--softmax", kReported},
    Alias{"rsigma", "--save-rstd", kComputed},
    Alias{"std", "--softmax", kReported},
    Alias{"std", "--save-rstd", kRstd},
    Alias{"save-std", "--save-rstd", kRstd},
    Alias{"bias", "--dbias", kNoBias},
    Alias{"beta", "--dbias", kNoBias},
    Alias{"shift", "--dbias", kNoBias},
    Alias{"grad", "--dy", ""},
    Alias{"dout", "--dy", ""},
    Alias{"grad-out", "--dy", ""},
    Alias{"grad-output", "--dy", ""},
    Alias{"upstream", "--dy", ""},
    Alias{"dinput", "--dx", ""},
    Alias{"grad-input", "--dx", ""},
    Alias{"dw", "--dweight", ""},
    Alias{"dgamma", "--dweight", ""},
    Alias{"dscale", "--dweight", ""},
    Alias{"grad-weight", "--dweight", ""},
    Alias{"db", "--dbias", ""},
    Alias{"dbeta", "--dbias", ""},
    Alias{"dshift", "--dbias", ""},
    Alias{"grad-bias", "--dbias", ""},
    Alias{"inv-std", "--rstd", ""},
    Alias{"inv-std-dev", "--rstd", ""},
    Alias{"invstddev", "--rstd", ""},
    Alias{"invvar", "--rstd", ""},
    Alias{"invvar", "--save-rstd", kComputed},
    Alias{"rsigma", "--rstd", ""},
    Alias{"row", "--rows", "here it is --rows, of one row --rows 3:4"},
    Alias{"range", "--rows", ""},
    Alias{"row-range", "--rows", ""},
    Alias{"slice", "--rows", ""},
    Alias{"nrows", "--rows", kFirstRows},
    Alias{"n", "--rows", kFirstRows},
    Alias{"head", "--rows", kFirstRows},
    Alias{"limit", "--rows", kFirstRows},
    Alias{"tail", "--rows", "the last 5 rows are --rows -5:"},
    Alias{"top", "--worst", ""},
    Alias{"top", "--histogram", kEveryRow},
    Alias{"top", "--rows", kFirstRows},
    Alias{"worst", "--histogram", kEveryRow},
    Alias{"by", "--histogram", kEveryRow},
    Alias{"sort", "--by", ""},
    Alias{"sort", "--help", kEveryRow},
    Alias{"sort-by", "--by", ""},
    Alias{"sort-by", "--help", kEveryRow},
    Alias{"skiprows", "--rows", "all from the 5th on are --rows 5:"},
    Alias{"index", "--row", ""},
    Alias{"backend", "--kernel", ""},
    Alias{"impl", "--kernel", ""},
    Alias{"isa", "--kernel", ""},
    Alias{"j", "--threads", ""},
    Alias{"jobs", "--threads", ""},
    Alias{"nthreads", "--threads", ""},
    Alias{"num-threads", "--threads", ""},
    Alias{"workers", "--threads", ""},
    Alias{"tol", "--rtol", "here they are --rtol and --atol"},
    Alias{"tol", "--help", kTolerances},
    Alias{"rel", "--rtol", ""},
    Alias{"rel-tol", "--rtol", ""},
    Alias{"relative", "--rtol", ""},
    Alias{"abs", "--atol", ""},
    Alias{"abs-tol", "--atol", ""},
    Alias{"absolute", "--atol", ""},
    Alias{"ulp", "--max-ulp", ""},
    Alias{"ulps", "--max-ulp", ""},
    Alias{"nulp", "--max-ulp", ""},
    Alias{"equal-nan", "--no-equal-nan", "NaN equals NaN, unless --no-equal-nan is given"},
    Alias{"silent", "--quiet", ""},
    Alias{"s", "--quiet", ""},
    Alias{"max-mismatches", "--max-diffs", ""},
    Alias{"include", "--only", ""},
    Alias{"include", "--keep-going", kPattern},
    Alias{"filter", "--only", ""},
    Alias{"filter", "--keep-going", kPattern},
    Alias{"only", "--keep-going", kPattern},
    Alias{"exclude", "--skip", ""},
    Alias{"ignore", "--skip", ""},
    Alias{"map", "--rename", ""},
    Alias{"intersection", "--common", ""},
    Alias{"hist", "--histogram", ""},
    Alias{"bins", "--histogram", "here it is --histogram, which chooses its bars"},
    Alias{"width", "--linewidth", ""},
    Alias{"width", "--digits", kFitsTerminal},
    Alias{"linewidth", "--digits", kFitsTerminal},
    Alias{"max-diff", "--max-abs", "here it is --max-abs; --max-diffs is how many are listed"},
    Alias{"precision", "--digits", ""},
    Alias{"digits", "--precision", ""},
    Alias{"suppress", "--sci-mode", "here it is --sci-mode off"},
    Alias{"v", "--verbose", ""},
};

struct CommandAlias {
  std::string_view word;
  std::string_view command;
};

constexpr std::array kCommandAliases{CommandAlias{"layernorm", "apply"},
                                     CommandAlias{"layer-norm", "apply"},
                                     CommandAlias{"norm", "apply"},
                                     CommandAlias{"normalize", "apply"},
                                     CommandAlias{"normalise", "apply"},
                                     CommandAlias{"rmsnorm", "apply --rms"},
                                     CommandAlias{"rms-norm", "apply --rms"},
                                     CommandAlias{"run", "apply"},
                                     CommandAlias{"backward", "grad"},
                                     CommandAlias{"bwd", "grad"},
                                     CommandAlias{"backprop", "grad"},
                                     CommandAlias{"gradient", "grad"},
                                     CommandAlias{"vjp", "grad"},
                                     CommandAlias{"trace", "explain"},
                                     CommandAlias{"walkthrough", "explain"},
                                     CommandAlias{"steps", "explain"},
                                     CommandAlias{"step-by-step", "explain"},
                                     CommandAlias{"teach", "explain"},
                                     CommandAlias{"isclose", "compare"},
                                     CommandAlias{"assert-close", "compare"},
                                     CommandAlias{"assert-allclose", "compare"},
                                     CommandAlias{"diff", "compare"},
                                     CommandAlias{"cmp", "compare"},
                                     CommandAlias{"allclose", "compare"},
                                     CommandAlias{"check", "compare"},
                                     CommandAlias{"verify", "compare"},
                                     CommandAlias{"print", "show"},
                                     CommandAlias{"cat", "show"},
                                     CommandAlias{"info", "show"},
                                     CommandAlias{"ls", "show"},
                                     CommandAlias{"list", "show"},
                                     CommandAlias{"view", "show"},
                                     CommandAlias{"head", "show"},
                                     CommandAlias{"dump", "show"},
                                     CommandAlias{"inspect", "show"},
                                     CommandAlias{"summary", "stats"},
                                     CommandAlias{"describe", "stats"},
                                     CommandAlias{"statistics", "stats"},
                                     CommandAlias{"hist", "stats"},
                                     CommandAlias{"histogram", "stats"},
                                     CommandAlias{"help", "--help"},
                                     CommandAlias{"version", "--version"}};

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

const Alias* find_alias(const CLI::App& command, const std::string& word) {
  const auto* found = std::find_if(kAliases.begin(), kAliases.end(), [&](const Alias& alias) {
    return alias.word == word && command.get_option_no_throw(std::string(alias.option)) != nullptr;
  });
  return found == kAliases.end() ? nullptr : found;
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
         std::any_of(kAliases.begin(), kAliases.end(), [&](const Alias& alias) {
           return alias.word == name && alias.option == "-o";
         });
}

std::string is_an_option(const CLI::App& program, const std::string& option) {
  return concat(option, " is an option of ", commands_with(program, option));
}

// For a command that has none of the options that a word may stand for: the last of them.
const Alias* last_alias(const std::string& name) {
  const auto found = std::find_if(kAliases.rbegin(), kAliases.rend(),
                                  [&](const Alias& alias) { return alias.word == name; });
  return found == kAliases.rend() ? nullptr : &*found;
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
  if (const Alias* const alias = find_alias(command, name)) {
    return alias->hint.empty() ? concat("here it is ", alias->option) : std::string(alias->hint);
  }
  if (names_output(name)) {
    return command.get_option_no_throw("--page") == nullptr
               ? "the result goes to standard output: > FILE"
               : "the report goes to standard output: > FILE; --page writes a page";
  }
  const CLI::App& program = *command.get_parent();
  const std::string option = concat(name.size() == 1 ? "-" : "--", name);
  if (!commands_with(program, option).empty()) return is_an_option(program, option);
  if (const Alias* const alias = last_alias(name)) {
    return is_an_option(program, std::string(alias->option));
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
  return contains(long_options(command), name) || find_alias(command, name) != nullptr;
}

std::string hint_for_command(const CLI::App& program, const std::string& word) {
  const std::string name = canonical(word);
  const auto* alias =
      std::find_if(kCommandAliases.begin(), kCommandAliases.end(),
                   [&](const CommandAlias& command) { return command.word == name; });
  if (alias != kCommandAliases.end()) return concat("here it is lnorm ", alias->command);
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(program)) names.push_back(command->get_name());
  const std::string near = nearest(name, names);
  return near.empty() ? "lnorm --help lists the commands"
                      : concat("did you mean lnorm ", near, "?");
}

}  // namespace lnorm::app
