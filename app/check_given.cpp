#include "check_given.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "commands.hpp"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/nearest.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/format.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/io/os.hpp"
#include "report_output.hpp"

namespace lnorm::app {

namespace {

// "--layer_norm_eps=1" is "layer-norm-eps".
std::string canonical(std::string_view word) {
  word = word.substr(0, word.find('='));
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string result = lower_case(word);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

bool contains(std::string_view words, std::string_view word) {
  const auto all = split(words, ' ');
  return !word.empty() && std::find(all.begin(), all.end(), word) != all.end();
}

// Without dashes.
std::vector<std::string> long_names(Commands commands) {
  std::vector<std::string> names;
  for (const Option& option : all_options()) {
    if ((option.commands & commands) == 0) continue;
    for (const std::string_view name : split(option.names, ',')) {
      if (name.starts_with("--")) names.emplace_back(name.substr(2));
    }
  }
  return names;
}

bool has_long_name(Command command, const std::string& name) {
  return find_option(command, concat("--", name)) != nullptr;
}

// An option of ours that a word of another tool stands for.
struct Meaning {
  std::string_view option;  // empty: there is none
  std::string_view hint;
};

// The first one in these commands, or the last one of all.
Meaning meaning_of(std::string_view word, std::optional<Command> command) {
  Meaning found;
  for (const Option& option : all_options()) {
    for (const Called& called : option.called) {
      if (!contains(called.words, word)) continue;
      found = {called.name.empty() ? option.name() : called.name, called.hint};
      const Commands in = called.in == 0 ? option.commands : called.in;
      if (command && (in & *command) != 0) return found;
    }
  }
  return command ? Meaning{} : found;
}

// "lnorm stats", "lnorm apply, stats and softmax"; empty if no command has the option.
std::string commands_with(std::string_view option) {
  std::vector<std::string_view> names;
  for (const CommandRow& row : all_commands()) {
    if (find_option(row.command, option) != nullptr) names.push_back(row.name);
  }
  return names.empty() ? "" : concat("lnorm ", listed(names, " and "));
}

// Whether other commands write their output to what the word names.
bool names_output(const std::string& word) {
  if (word == "o" || word == "output") return true;
  return meaning_of(word, kApply).option == "-o";
}

std::string is_an_option(std::string_view option) {
  return concat(option, " is an option of ", commands_with(option));
}

// What to try in place of an option that a command does not have: the nearest that it has, ours for another tool's word, or the
// commands that have it.
std::string hint_for_option(Command command, std::string_view word) {
  const std::string name = canonical(word);
  if (has_long_name(command, name)) return concat("did you mean --", name, "?");
  if (const Meaning meaning = meaning_of(name, command); !meaning.option.empty()) {
    return meaning.hint.empty() ? concat("here it is ", meaning.option) : std::string(meaning.hint);
  }
  if (names_output(name)) {
    return find_option(command, "--page") == nullptr
               ? "the result goes to standard output: > FILE"
               : "the report goes to standard output: > FILE; --page writes a page";
  }
  const std::string option = concat(name.size() == 1 ? "-" : "--", name);
  if (!commands_with(option).empty()) return is_an_option(option);
  // The command has none of the options that the word may stand for.
  const std::string_view other = meaning_of(name, {}).option;
  if (!other.empty()) return is_an_option(other);
  std::vector<std::string> candidates = long_names(command);
  candidates.emplace_back("version");
  const std::string near = nearest(name, candidates);
  if (near == "version") return "lnorm --version";  // of the program, not of a command
  if (!near.empty()) return concat("did you mean --", near, "?");
  const std::string elsewhere = nearest(name, long_names(kAllCommands), Nearness::strict);
  if (!elsewhere.empty()) return is_an_option(concat("--", elsewhere));
  return hint_of(command);
}

// Whether a word is an option of the command, or one that hint_for_option knows, but for a dash: "-eps".
bool lacks_dash(Command command, std::string_view word) {
  if (word.size() < 3 || word[0] != '-' || word[1] == '-' || word == "-help") return false;
  const std::string name = canonical(word);
  return has_long_name(command, name) || !meaning_of(name, command).option.empty();
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
void refuse_stray_value(Command command, const Option& option, const std::string& name,
                        const std::string& value, const std::string& stray) {
  double number = 0;
  const bool is_value = parse_real(stray, number) || stray == "true" || stray == "false";
  if (!is_value || is_file(stray)) return;
  if (option.is_flag()) {
    throw Error(concat(name, " takes no value, found ", stray), hint_of(command));
  }
  const std::string list = concat(value, ",", stray);
  const bool takes_list = option.value.find(',') != std::string::npos;
  throw Error(concat(name, " takes one value, found ", printable(value), " and ", stray),
              takes_list ? concat("a list is written ", shell_word(list))
              : name == "--rows"
                  ? concat("rows are written ", shell_word(concat(value, ':', stray)))
              : name == "--axis" ? concat("of several it is --axes ", shell_word(list))
                                 : hint_of(command));
}

void refuse_options(Command command, std::span<const char* const> files) {
  for (const std::string file : files) {
    if (looks_like_option(file) && find_option(command, file) != nullptr && !is_file(file)) {
      throw Error(concat("found ", file, " after --"), "options come before --");
    }
  }
}

constexpr std::string_view kAnyName = "--to npy writes .npy there, whatever its name is";

void check_one_of(const Arguments& arguments, const Option& option) {
  if (option.one_of.empty()) return;
  const auto names = split(option.one_of, ' ');
  for (const Option* const other : arguments.options) {
    if (other <= &option || std::find(names.begin(), names.end(), other->name()) == names.end()) {
      continue;
    }
    throw Error(
        concat("found both ", option.name(), " and ", other->name(), ", expected one of them"));
  }
}

void check_effect(const Arguments& arguments, const Option& option, const NoEffect& no_effect) {
  if ((no_effect.in & arguments.command) == 0) return;
  if (!no_effect.without.empty() && arguments.first_of(no_effect.without).empty()) {
    auto names = split(no_effect.without, ' ');
    std::erase_if(names, [&](std::string_view name) {
      return find_option(arguments.command, std::string(name)) == nullptr;
    });
    const std::string needed = joined(names, " or ");
    throw Error(concat(option.name(), " has no effect without ", needed));
  }
  const std::string_view other = arguments.first_of(no_effect.beside);
  if (other.empty() || arguments.has(no_effect.unless)) return;
  throw Error(concat(option.name(), " has no effect beside ", other));
}

void check_sum_rounding(const Arguments& arguments) {
  if (!arguments.normalization.round_sum || arguments.tensors.contains(TensorRole::residual))
    return;
  throw Error("--round sum has no effect without --residual");
}

// Only by RMS there is no mean.
void check_given_statistics(const Arguments& arguments) {
  const TensorWords& tensors = arguments.tensors;
  if (tensors.contains(TensorRole::mean) || !arguments.normalization.options.formula.has_mean())
    return;
  if (!tensors.contains(TensorRole::rstd) && !tensors.contains(TensorRole::variance)) return;
  throw Error(concat(tensors.contains(TensorRole::rstd) ? "--rstd" : "--variance",
                     " needs --mean, unless --rms is given"));
}

// Throws Error unless an option has one value, or one for each input.
template <class Value>
void check_positions(std::string_view option, const std::vector<Value>& values,
                     std::size_t inputs) {
  if (values.size() <= 1 || values.size() == inputs) return;
  throw Error(concat(option, " takes one value, or one for each of ", inputs, " inputs, found ",
                     values.size()));
}

// What a raw file does not tell must be told, and of no other file. inputs: how many the command has.
void check_raw(Arguments& arguments, std::size_t inputs) {
  InputArguments& input = arguments.input;
  check_positions("--from", input.from, inputs);
  check_positions("--as", input.as, inputs);
  check_positions("--offset", input.offsets, inputs);
  const ReadOptions& options = input.options = input.reading(0);
  const bool has_shape = arguments.has("--shape");
  const auto& from = input.from;
  if (options.from == Format::raw ||
      std::find(from.begin(), from.end(), Format::raw) != from.end()) {
    if (options.as && has_shape) return;
    throw Error("--from raw needs --as and --shape: the file does not tell its dtype and shape",
                concat(options.as ? "" : "--as float32", options.as || has_shape ? "" : " ",
                       has_shape ? "" : "--shape 2,3"));
  }
  const bool has_normalized_shape = find_option(arguments.command, "--normalized-shape") != nullptr;
  const bool has_bias = find_option(arguments.command, "--bias") != nullptr;
  for (const auto& [name, hint] : {
           std::pair{"--shape", has_normalized_shape ? kKeepsShape : ""},
           std::pair{"--offset", std::string_view(has_bias ? "what is added is --bias" : "")},
           std::pair{"--big-endian", std::string_view()},
       }) {
    if (!arguments.has(name)) continue;
    throw Error(concat(name, " has no effect without --from raw"),
                std::string(options.as && has_shape ? "--from raw" : hint));
  }
}

// A name whose extension is none of a format that we write.
void check_extension(std::string_view option, const std::string& path, std::string_view hint) {
  const std::string found = std::filesystem::path(path).extension().string();
  std::vector<std::string> written;
  for (const FormatRow& row : formats()) {
    if (!row.is_written()) continue;
    for (const std::string_view one : split(row.extensions, ' ')) written.emplace_back(one);
  }
  const bool is_written =
      std::find(written.begin(), written.end(), extension(path)) != written.end();
  if (found.size() <= 1 || is_written) return;
  throw Error(concat(option, ' ', printable(path), ": ", printable(found),
                     " is not written, expected ", listed(written, " or ")),
              std::string(hint));
}

// Gradients have the format that is asked for, if one is; what apply saves beside y has not.
void check_extensions(const Arguments& arguments) {
  const bool has_format = arguments.output.format.has_value();
  if ((arguments.command & (kApply | kSoftmax | kConvert)) != 0 && !has_format) {
    check_extension("-o", arguments.output.path, kAnyName);
  }
  const bool is_grad = arguments.command == kGrad;
  for (const auto& [result, path] : arguments.results) {
    if (is_grad && has_format) continue;
    check_extension(result_row(result).option, path, is_grad ? kAnyName : "");
  }
}

void check_backward(const Arguments& arguments) {
  const Rounding& rounding = arguments.normalization.options.rounding;
  if (!rounding.xhat && !rounding.product) return;
  throw Error(concat("--round ", rounding.xhat ? "xhat" : "product",
                     " has no part in the gradient, expected sum"));
}

void check_grad(Arguments& arguments) {
  if (!arguments.tensors.contains(TensorRole::dy)) {
    const std::vector<std::string>& words = arguments.words;
    throw Error("grad needs --dy, the gradient of what lnorm apply writes",
                words.size() == 2
                    ? concat("lnorm grad ", shell_word(words[0]), " --dy ", shell_word(words[1]))
                    : hint_of(arguments.command));
  }
  check_backward(arguments);
  check_sum_rounding(arguments);
  if (arguments.results.empty()) arguments.results[Result::dx] = "-";
}

// Beside the report on standard output.
void check_page(const PageArguments& page) {
  if (page.path.empty()) return;
  if (page.path == "-") throw Error("--page takes a file: standard output has the report");
  check_page_extension("--page", page.path);
}

// Whether two names are of one file, by whatever way. A device, as /dev/null, takes whatever comes.
bool are_same_file(const std::string& a, const std::string& b) {
  const auto left = os::status(a);
  if (left && S_ISCHR(left->st_mode)) return false;
  if (a == b) return true;
  const auto right = os::status(b);
  if (!left && !right) {
    std::error_code ignored;
    return std::filesystem::weakly_canonical(a, ignored) ==
           std::filesystem::weakly_canonical(b, ignored);
  }
  return left && right && S_ISREG(left->st_mode) && left->st_dev == right->st_dev &&
         left->st_ino == right->st_ino;
}

// Files beside the report on standard output: they are no file that is read, and no other one of them.
void check_saved_reports(const Arguments& arguments) {
  std::vector<std::string> taken = arguments.words;
  for (const auto& [role, word] : arguments.tensors) taken.push_back(word);
  const std::optional<std::string> page = arguments.page.path.empty() || arguments.page.path == "-"
                                              ? std::nullopt
                                              : std::optional(arguments.page.path);
  for (const auto& [option, path] :
       {std::pair("--save-json", arguments.save_json),
        std::pair("--save-junit", arguments.save_junit),
        std::pair("--rows-out", arguments.rows_out), std::pair("--page", page)}) {
    if (!path) continue;
    if (*path == "-") {
      throw Error(concat(option, " takes a file: standard output has the report"));
    }
    for (const std::string& other : taken) {
      if (!are_same_file(*path, other)) continue;
      throw Error(concat(option, ' ', printable(*path), ": names what is read, or another output"));
    }
    taken.push_back(*path);
  }
}

void check_compare(Arguments& arguments) {
  check_page(arguments.page);
  if (arguments.words.size() != 2) {
    throw Error(
        concat("compare takes two tensors, ACTUAL and EXPECTED, found ", arguments.words.size()),
        hint_of(arguments.command));
  }
  check_raw(arguments, 2);
  check_saved_reports(arguments);
  arguments.input.names = arguments.words;
}

void check_check(Arguments& arguments) {
  check_page(arguments.page);
  const std::vector<std::string>& words = arguments.words;
  const bool is_backward = arguments.tensors.contains(TensorRole::dy);
  if (words.size() != 2 && !(words.size() == 1 && is_backward)) {
    throw Error(concat("check takes two tensors, INPUT and OUTPUT, found ", words.size()),
                is_backward ? "with --dy, INPUT alone will do" : hint_of(arguments.command));
  }
  for (const TensorRole role :
       {TensorRole::actual_mean, TensorRole::actual_rstd, TensorRole::actual_sum}) {
    if (words.size() == 2 || !arguments.tensors.contains(role)) continue;
    throw Error(concat(role_row(role).option, " is judged beside OUTPUT, which is missing"));
  }
  if (words.size() == 1) check_backward(arguments);
  check_given_statistics(arguments);
  check_affine_options(arguments);
  const auto gradients =
      std::count_if(arguments.options.begin(), arguments.options.end(),
                    [](const Option* option) { return option->name().starts_with("--actual-"); });
  check_raw(arguments, words.size() + (is_backward ? 1 : 0) + static_cast<std::size_t>(gradients));
  check_saved_reports(arguments);
  arguments.input.names = {words[0]};
  if (words.size() == 2 && !words[1].empty()) arguments.tensors[TensorRole::output] = words[1];
}

void check_made_inputs(const Arguments& arguments) {
  if (!arguments.words.empty()) {
    throw Error(concat("inputs reads no tensors, found ", printable(arguments.words.front())),
                "it makes them: --shape 8,1025 -o cases/");
  }
  if (!arguments.made_shape) throw Error("inputs needs --shape", "--shape 8,1025");
  if (!arguments.has("-o")) throw Error("inputs needs -o, a folder or a file", "-o cases/");
  const std::string& path = arguments.output.path;
  const std::string kind = path.ends_with('/') ? "" : extension(path);
  if (path == "-" || (!kind.empty() && kind != ".npz" && kind != ".safetensors")) {
    throw Error(concat("-o ", printable(path), ": expected a folder, .npz or .safetensors"));
  }
  const DType dtype = arguments.output.dtype.value_or(DType::float32);
  if (kind == ".npz" && !is_npy_dtype(dtype)) {
    throw Error(concat("-o ", printable(path), ": .npz has no ", name(dtype)),
                "a folder, or .safetensors, has it");
  }
}

// What to try instead of a second input that is no file.
std::string hint_for_second(const Arguments& arguments, const std::string& second) {
  if (find_command(second) != nullptr) {
    return concat("the command comes first: lnorm ", second, ' ', shell_word(arguments.words[0]));
  }
  const std::optional<Format> first = format_of_extension(arguments.words[0]);
  if (first && format_row(*first).create == nullptr && !format_of_extension(second)) {
    return concat("a tensor of a file is ", shell_word(arguments.words[0] + ':' + second));
  }
  const bool may_be_output =
      find_option(arguments.command, "-o") != nullptr && !arguments.has("-o");
  if (!may_be_output || second.find(':') != second.npos) return "";
  return concat("-o ", shell_word(second), " writes there");
}

// The tensors that a command names; otherwise standard input.
void take_inputs(Arguments& arguments) {
  const std::vector<std::string>& words = arguments.words;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string path = words[i].substr(0, words[i].rfind(':'));
    if (is_file(words[i]) || is_file(path)) continue;
    throw Error(concat("there is no file '", printable(words[i]), "', the ", i + 1,
                       i == 1   ? "nd"
                       : i == 2 ? "rd"
                                : "th",
                       " INPUT"),
                hint_for_second(arguments, words[i]));
  }
  if (!words.empty()) arguments.input.names = words;
}

// A list of wrong kernels depends on nothing but which are chosen.
void check_list(const Arguments& arguments) {
  const auto allowed =
      split("--list --kernels --skip-kernels --quantize --json --linewidth --color", ' ');
  for (const Option* const option : arguments.options) {
    if (std::find(allowed.begin(), allowed.end(), option->name()) != allowed.end()) continue;
    throw Error(concat(option->name(), " has no effect beside --list"));
  }
  if (!arguments.words.empty()) throw Error("--list tries nothing, found an input");
}

}  // namespace

void check_affine_options(const Arguments& arguments) {
  const LayerNormOptions& options = arguments.normalization.options;
  const Rounding& rounding = options.rounding;
  const bool has_weight = arguments.tensors.contains(TensorRole::weight);
  const bool has_bias = arguments.tensors.contains(TensorRole::bias);
  const auto check = [&](const char* option, bool is_given, bool has_effect, const char* needed) {
    if (!is_given || has_effect) return;
    throw Error(concat(option, " has no effect without ", needed),
                arguments.quantization ? "--round y rounds what is quantized" : "");
  };
  check_sum_rounding(arguments);
  check("--round xhat", rounding.xhat, has_weight || has_bias, "--weight or --bias");
  check("--round product", rounding.product, has_weight && has_bias, "--weight and --bias");
  check("--zero-centered-weight", options.zero_centered_weight, has_weight, "--weight");
}

bool is_file(const std::string& name) {
  return is_standard_input(name) || is_json_literal(name) || os::status(name);
}

std::string hint_for_command(std::string_view word) {
  const std::string name = canonical(word);
  if (name == "help" || name == "version") return concat("here it is lnorm --", name);
  if (name == "rmsnorm" || name == "rms-norm") return "here it is lnorm apply --rms";
  std::vector<std::string> names;
  for (const CommandRow& row : all_commands()) {
    if (contains(row.called, name)) return concat("here it is lnorm ", row.name);
    names.emplace_back(row.name);
  }
  const std::string near = nearest(name, names);
  return near.empty() ? "lnorm --help lists the commands"
                      : concat("did you mean lnorm ", near, "?");
}

void fail_option(Command command, const std::string& word) {
  throw Error(concat("there is no option ", printable(word)),
              is_file(word) ? concat("the file is ", shell_word("./" + word))
                            : hint_for_option(command, word));
}

void check_words(Command command, std::span<const char* const> argv) {
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const std::string word = argv[i];
    const auto next = [&](std::size_t distance) -> std::string {
      return i + distance < argv.size() ? argv[i + distance] : "";
    };
    if (word == "--") return refuse_options(command, argv.subspan(i + 1));
    if (lacks_dash(command, word)) fail_option(command, word);
    const Option* const option = find_option(command, word);
    if (option == nullptr) continue;
    if (option->is_flag()) {
      refuse_stray_value(command, *option, word, "", next(1));
      continue;
    }
    if (looks_like_option(next(1))) {
      throw Error(concat(word, " takes a value, found ", printable(next(1))),
                  option->value == "PATH" || option->value == "T"
                      ? concat("a file of that name is ", shell_word("./" + next(1)))
                      : hint_of(command));
    }
    if (!next(1).empty()) refuse_stray_value(command, *option, word, next(1), next(2));
    ++i;
  }
}

void check_options(const Arguments& arguments) {
  for (const Option* const option : arguments.options) check_one_of(arguments, *option);
  for (const Option* const option : arguments.options) {
    for (const NoEffect& no_effect : option->no_effect) check_effect(arguments, *option, no_effect);
  }
}

void check_arguments(Arguments& arguments) {
  if (arguments.command == kCompare) return check_compare(arguments);
  if (arguments.command == kCheck) return check_check(arguments);
  if (arguments.command == kInputs) return check_made_inputs(arguments);
  check_given_statistics(arguments);
  if (arguments.command == kGrad) {
    check_grad(arguments);
  } else if (arguments.command != kMutants) {
    check_affine_options(arguments);
  }
  if (arguments.command == kReport) check_page_extension("-o", arguments.page.path);
  check_extensions(arguments);
  check_saved_reports(arguments);
  if (arguments.lists_kernels) return check_list(arguments);
  check_raw(arguments, arguments.tensors.contains(TensorRole::dy) ? 2 : 1);
  take_inputs(arguments);
}

}  // namespace lnorm::app
