#include "hints.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

struct Foreign {
  std::string_view word;    // of another tool: lower case, dashes between words
  std::string_view option;  // ours; it is no hint for commands that do not have it
  std::string_view hint;    // in place of "here it is OPTION"
};

constexpr std::string_view kKept =
    "mean and rstd keep the normalized axes as 1; --no-keepdim drops them";
constexpr std::string_view kNoAffine = "without --weight and --bias there are none";
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
    Foreign{"shape", "--normalized-shape", ""},
    Foreign{"norm-shape", "--normalized-shape", ""},
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
    Foreign{"elementwise-affine", "--weight", kNoAffine},
    Foreign{"no-elementwise-affine", "--weight", kNoAffine},
    Foreign{"no-affine", "--weight", kNoAffine},
    Foreign{"no-weight", "--weight", kNoAffine},
    Foreign{"no-bias", "--weight", kNoAffine},
    Foreign{"use-scale", "--weight", kNoAffine},
    Foreign{"use-bias", "--weight", kNoAffine},
    Foreign{"rmsnorm", "--rms", ""},
    Foreign{"rms-norm", "--rms", ""},
    Foreign{"zero-centered-gamma", "--zero-centered-weight", ""},
    Foreign{"add-unit-offset", "--zero-centered-weight", ""},
    Foreign{"unit-offset", "--zero-centered-weight", ""},
    Foreign{"keepdim", "--no-keepdim", kKept},
    Foreign{"keepdims", "--no-keepdim", kKept},
    Foreign{"no-keepdims", "--no-keepdim", ""},
    Foreign{"squeeze", "--no-keepdim", ""},
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
    Foreign{"format", "--to", ""},
    Foreign{"format", "--csv", "here it is --json, or --csv"},
    Foreign{"format", "--json", ""},
    Foreign{"output-format", "--to", ""},
    Foreign{"output-format", "--json", ""},
    Foreign{"out-format", "--to", ""},
    Foreign{"input-format", "--from", ""},
    Foreign{"in-format", "--from", ""},
    Foreign{"endian", "--big-endian", ""},
    Foreign{"byte-order", "--big-endian", ""},
    Foreign{"type", "--dtype", ""},
    Foreign{"out-dtype", "--dtype", ""},
    Foreign{"output-dtype", "--dtype", ""},
    Foreign{"cast", "--dtype", ""},
    Foreign{"mean", "--save-mean", ""},
    Foreign{"mu", "--save-mean", ""},
    Foreign{"rstd", "--save-rstd", ""},
    Foreign{"inv-std", "--save-rstd", ""},
    Foreign{"inv-std-dev", "--save-rstd", ""},
    Foreign{"invstddev", "--save-rstd", ""},
    Foreign{"rsigma", "--save-rstd", ""},
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
    Foreign{"invvar", "--rstd", ""},
    Foreign{"rsigma", "--rstd", ""},
    Foreign{"row", "--rows", "here it is --rows, of one row --rows 3:4"},
    Foreign{"range", "--rows", ""},
    Foreign{"row-range", "--rows", ""},
    Foreign{"slice", "--rows", ""},
    Foreign{"nrows", "--rows", "the first 5 are --rows :5"},
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
    Foreign{"filter", "--only", ""},
    Foreign{"exclude", "--skip", ""},
    Foreign{"ignore", "--skip", ""},
    Foreign{"map", "--rename", ""},
    Foreign{"intersection", "--common", ""},
    Foreign{"hist", "--histogram", ""},
    Foreign{"bins", "--histogram", "here it is --histogram, which chooses its bars"},
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

// How many characters must be inserted, left out, changed or swapped with their neighbors.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
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

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongest = 40;  // no option is as long
  if (word.size() < 2 || word.size() > kLongest) return "";
  std::string found;
  for (const std::string& candidate : candidates) {
    const bool shorter = found.empty() || candidate.size() < found.size();
    if (candidate.starts_with(word) && shorter) found = candidate;
  }
  if (!found.empty()) return found;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    found = candidate;
  }
  return found;
}

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
  if (names_output(name)) return "the result goes to standard output: > FILE";
  const std::string option = concat(name.size() == 1 ? "-" : "--", name);
  const std::string others = commands_with(*command.get_parent(), option);
  if (!others.empty()) return concat(option, " is an option of ", others);
  std::vector<std::string> candidates = own;
  candidates.emplace_back("version");
  const std::string near = nearest(name, candidates);
  if (near == "version") return "lnorm --version";  // of the program, not of a command
  if (!near.empty()) return concat("did you mean --", near, "?");
  for (const CLI::App* other : commands_of(*command.get_parent())) {
    const std::string elsewhere = nearest(name, long_options(*other));
    if (elsewhere.empty()) continue;
    return concat("--", elsewhere, " is an option of ",
                  commands_with(*command.get_parent(), concat("--", elsewhere)));
  }
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
