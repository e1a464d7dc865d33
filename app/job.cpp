#include "job.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>

#include "lnorm.h"
#include "lnorm/core/interruption.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/report/style.hpp"
#include "print_error.hpp"

namespace lnorm::app {

namespace {

// The inputs of a command, which no option names. word: messages and reports call it so.
struct RoleRow {
  Commands commands;
  std::string_view name;
  std::string_view word;
};
constexpr std::array kInputRoles{
    RoleRow{kCompare, "actual", "actual"},
    RoleRow{kCompare, "expected", "expected"},
    RoleRow{kAllCommands & ~(kCompare | kInputs), "input", "x"},
    RoleRow{kCheck, "output", "y"},
};

struct ResultRow {
  Commands commands;
  std::string_view name;
  std::string_view option;
};
constexpr std::array kResults{
    ResultRow{kApply | kSoftmax | kConvert, "y", "-o"},
    ResultRow{kApply, "mean", "--save-mean"},
    ResultRow{kApply, "rstd", "--save-rstd"},
    ResultRow{kApply, "variance", "--save-variance"},
    ResultRow{kApply, "sum", "--save-sum"},
    ResultRow{kApply, "scale", "--save-scale"},
    ResultRow{kGrad, "dx", "--dx"},
    ResultRow{kGrad, "dweight", "--dweight"},
    ResultRow{kGrad, "dbias", "--dbias"},
};

// They say how a terminal, a standard stream or an output file is used, which a job has none of.
constexpr std::array<std::string_view, 11> kOfProgram{
    "--color",    "--csv",   "--help",      "--json", "--name",   "--nan",
    "--progress", "--quiet", "--save-json", "--to",   "--verbose"};

bool is_of_program(Command command, const Option& option) {
  const auto has_name = [&](std::string_view name) { return option.has_name(name); };
  if (std::any_of(kOfProgram.begin(), kOfProgram.end(), has_name)) return true;
  return std::any_of(kResults.begin(), kResults.end(), [&](const ResultRow& row) {
    return (row.commands & command) != 0 && option.has_name(row.option);
  });
}

const RoleRow* find_role(Command command, std::string_view name) {
  const auto* const found = std::find_if(
      kInputRoles.begin(), kInputRoles.end(),
      [&](const RoleRow& row) { return (row.commands & command) != 0 && row.name == name; });
  return found == kInputRoles.end() ? nullptr : found;
}

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return concat("--", name);
}

std::string with_underscores(std::string_view option) {
  std::string name(option.substr(std::min(option.find_first_not_of('-'), option.size())));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool is_tensor(const Option& option) { return option.value == "T"; }

// Where a result is: no file has that name.
std::string place_of(std::string_view result) { return concat('(', result, ')'); }

thread_local const std::atomic<bool>* canceled_here = nullptr;

void throw_if_canceled() {
  if (canceled_here != nullptr && canceled_here->load(std::memory_order_relaxed)) throw Canceled();
}

// While it lives, loops of its thread end where a job is canceled.
class Cancellation {
 public:
  explicit Cancellation(std::atomic<bool>& canceled) : canceled_(canceled) {
    check_interrupted = throw_if_canceled;
    canceled_here = &canceled;
  }
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;
  ~Cancellation() {
    canceled_here = nullptr;
    canceled_ = false;
  }

 private:
  std::atomic<bool>& canceled_;
};

// Results that lie where an input lies go there when all is read.
class Detours {
 public:
  // The place that stands for a result's.
  Memory around(const Memory& place) {
    const auto bytes =
        static_cast<std::size_t>(element_count(place.info.shape)) * item_size(place.info.dtype);
    detours_.emplace_back(place, std::vector<std::byte>(bytes));
    Memory here{place.info, detours_.back().second.data(), {}};
    here.strides = c_strides(here.info);
    return here;
  }
  void finish() const {
    for (const auto& [place, bytes] : detours_) MemorySink(place).write_at(0, bytes);
  }

 private:
  std::vector<std::pair<Memory, std::vector<std::byte>>> detours_;
};

// Of a new tensor no page has been touched. NumPy asks the same for its arrays.
void ask_for_large_pages(const Memory& memory) {
  constexpr std::ptrdiff_t kLarge = std::ptrdiff_t{4} << 20;
  const auto [first, last] = extent_of(memory);
  if (last - first >= kLarge) os::prefer_large_pages({first, last});
}

}  // namespace

Job::Job(const CommandRow& command) : command_(command) {
  given_.command = command.command;
  arguments_ = initial_arguments(command.command);
  arguments_.color = When::never;
  arguments_.work.progress = When::never;
}

const Option& Job::option_of(const std::string& name) const {
  const std::string option = with_dashes(name);
  const Option* const found = find_option(command_.command, option);
  if (found == nullptr || found->set == nullptr) {
    try {
      fail_option(command_.command, option);
    } catch (const Error& error) {
      throw UnknownName(concat("there is no option ", printable(name)), error);
    }
  }
  if (is_of_program(command_.command, *found)) {
    throw UnknownName(concat(option, " has no meaning here: results and reports are in memory"));
  }
  return *found;
}

void Job::use(Arguments& arguments, Given& given, const Option& option,
              const std::string& word) const {
  option.set(arguments, {std::string(option.name()), option.value_text(), word});
  given.options.push_back(&option);
}

// An option may be set again by the same name. By another of its names it is a mistake.
void Job::take_name(const Option& option, const std::string& name) {
  const std::string& first = names_.emplace(&option, with_dashes(name)).first->second;
  if (first == with_dashes(name) || option.repeats) return;
  throw Error(concat(option.name(), " is given twice, as ", first, " and ", with_dashes(name)));
}

void Job::set(const std::string& name, const std::optional<std::string>& value) {
  if (const RoleRow* const role = find_role(command_.command, name); role != nullptr && value) {
    inputs_[std::string(role->name)] = *value;
    return;
  }
  const Option& option = option_of(name);
  if (option.is_flag() == value.has_value()) {
    throw Error(concat(option.name(), value ? " takes no value, found " : " takes a value",
                       value ? printable(*value) : ""));
  }
  planned_.clear();
  take_name(option, name);
  use(arguments_, given_, option, value.value_or(""));
}

void Job::bind(const std::string& role, const std::string& member, Memory tensor) {
  std::string word;
  if (const RoleRow* const row = find_role(command_.command, role)) {
    word = row->word;
    inputs_[std::string(row->name)] = word;
  } else {
    const Option& option = option_of(role);
    if (!is_tensor(option)) throw UnknownName(concat(option.name(), " takes no tensor"));
    take_name(option, role);
    word = with_underscores(option.name());
    // Several are paired with the inputs by their names.
    use(arguments_, given_, option, member.empty() ? word : concat(word, ":{}"));
  }
  auto& tensors = tensors_[word];
  if (member.empty()) tensors.clear();
  tensor.info.name = member.empty() ? word : concat(word, ':', member);
  set_order(tensor);
  tensors.emplace_back(member, std::move(tensor));
  sets_.clear();
  planned_.clear();
}

void Job::bind_result(const std::string& name, const Memory& memory) {
  for (const ResultRow& row : kResults) {
    if ((row.commands & command_.command) == 0 || row.name != name) continue;
    if (has_overlaps(memory)) {
      throw Error(concat(name, ": has elements that share memory, expected a place for each"));
    }
    results_.insert_or_assign(name, Place{find_option(command_.command, row.option), memory});
    const auto planned = planned_.find(name);
    // Another dtype is that of other results as well.
    if (planned == planned_.end() || planned->second.dtype != memory.info.dtype) planned_.clear();
    return;
  }
  fail_result(name);
}

void Job::check_inputs(const Arguments& arguments) const {
  const bool is_backward = arguments.tensors.contains(TensorRole::dy);
  for (const RoleRow& row : kInputRoles) {
    const std::string name(row.name);
    if ((row.commands & command_.command) == 0 || inputs_.contains(name)) continue;
    if (arguments.lists_kernels || (name == "output" && is_backward)) continue;
    throw Error(concat(name, " is missing: nothing is bound to it"));
  }
  const auto x = tensors_.find("x");
  if (writes_tensors() && x != tensors_.end() && x->second.size() > 1) {
    throw Error(
        concat("input: lnorm ", command_.name, " takes one tensor here, found ", x->second.size()));
  }
}

bool Job::writes_tensors() const {
  return (command_.command & (kApply | kSoftmax | kConvert | kGrad)) != 0;
}

// The arguments as the command line would give them, with these results.
Arguments Job::prepared(const std::vector<std::pair<const Option*, std::string>>& results,
                        bool are_all) {
  Arguments arguments = arguments_;
  Given given = given_;
  if (!arguments.linewidth) arguments.linewidth = Style::kAnyWidth;
  for (const auto& [option, word] : results) use(arguments, given, *option, word);
  for (const RoleRow& row : kInputRoles) {
    const auto input = inputs_.find(std::string(row.name));
    if ((row.commands & command_.command) != 0 && input != inputs_.end()) {
      given.words.push_back(input->second);
    }
  }
  check_inputs(arguments);
  if (are_all) check_options(given);
  check_arguments(given, arguments);
  if (!arguments.output.dtype) {
    // Results that have a place say their dtypes.
    for (const auto& [name, place] : results_) {
      const DType of_place = place.memory.info.dtype;
      const bool is_quantized = arguments.quantization && of_place == DType::int8;
      if (name == "mean" || name == "rstd" || !(is_floating(of_place) || is_quantized)) continue;
      const bool is_parameter = name == "dweight" || name == "dbias";
      auto& dtype = is_parameter ? arguments.parameter_dtype : arguments.output.dtype;
      if (name != "sum" && name != "scale") dtype = place.memory.info.dtype;
    }
  }
  arguments.input.options.in_parallel = in_parallel(arguments.work.threads);
  if (sets_.empty()) {
    for (const auto& [word, tensors] : tensors_) {
      sets_.push_back(std::make_shared<MemorySet>(word, tensors));
    }
  }
  arguments.input.options.files = std::make_shared<OpenSets>();
  for (const auto& set : sets_) {
    arguments.input.options.files->insert_or_assign(set->name(), OpenSet{set, Format::npy, false});
  }
  return arguments;
}

std::optional<TensorInfo> Job::result(const std::string& name) {
  // All of a command are planned at once: callers ask for one after another.
  std::vector<std::pair<const Option*, std::string>> words;
  std::vector<std::string> names;
  for (const ResultRow& row : kResults) {
    if ((row.commands & command_.command) == 0) continue;
    if (row.name == "mean" && !arguments_.normalization.options.formula.has_mean()) {
      if (name == row.name) return {};
      continue;
    }
    if (row.name == "sum" && name != row.name) continue;  // it needs a residual
    names.emplace_back(row.name);
    words.emplace_back(find_option(command_.command, row.option), place_of(row.name));
  }
  if (std::find(names.begin(), names.end(), name) == names.end()) fail_result(name);
  if (const auto found = planned_.find(name); found != planned_.end()) return found->second;
  const auto plan = [&](const auto& of) {
    Arguments arguments = prepared(of, false);
    std::vector<TensorInfo> planned;
    arguments.output.planned = &planned;
    command_.run(arguments);
    return planned;
  };
  try {
    const std::vector<TensorInfo> planned = plan(words);
    for (std::size_t i = 0; i < names.size(); ++i) planned_.insert_or_assign(names[i], planned[i]);
    return planned_.at(name);
  } catch (const Error&) {
    // What one of the others cannot be is no matter of this one.
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    return plan(std::vector{words[static_cast<std::size_t>(at)]}).back();
  }
}

void Job::fail_result(const std::string& name) const {
  throw UnknownName(concat("lnorm ", command_.name, " has no result ", printable(name)));
}

const MadeTensor* Job::made(const std::string& name) const {
  for (const MadeCase& one : made_.cases) {
    for (const MadeTensor* const tensor :
         {&one.x, &one.weight, &one.bias, one.dy ? &*one.dy : nullptr}) {
      if (tensor != nullptr && tensor->info.name == name) return tensor;
    }
  }
  return nullptr;
}

int Job::run() {
  const Cancellation cancellation(canceled_);
  throw_if_canceled();
  text_.clear();
  json_.clear();
  notes_.clear();
  if (command_.command == kInputs && arguments_.output.path == "-") return run_inputs();
  ResultsInMemory places;
  std::vector<std::pair<const Option*, std::string>> words;
  Detours detours;
  for (auto& [name, place] : results_) {
    if (name == "mean" && !arguments_.normalization.options.formula.has_mean()) {
      throw Error("mean: this norm subtracts none, so that there is no such result");
    }
    Memory memory = place.memory;
    const bool is_read = std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& role) {
      return std::any_of(role.second.begin(), role.second.end(),
                         [&](const auto& member) { return overlap(memory, member.second); });
    });
    if (is_read) memory = detours.around(memory);
    ask_for_large_pages(memory);
    for (const auto& [other, its] : results_) {
      if (other != name && overlap(place.memory, its.memory)) {
        throw Error(
            concat(name, " and ", other, " lie among each other, expected a place for each"));
      }
    }
    places.emplace(place_of(name), memory);
    words.emplace_back(place.option, place_of(name));
  }
  Arguments arguments = prepared(words, true);
  // Those of other results say where the first one would go.
  if (arguments.output.path == "-" && !results_.empty()) {
    arguments.output.path = place_of("");
    places.emplace(arguments.output.path, std::nullopt);
  }
  if (writes_tensors() && results_.empty()) {
    throw Error("no result is bound: nothing would be computed");
  }
  arguments.output.in_memory = &places;
  const int status = run_command(arguments);
  detours.finish();
  return status;
}

int Job::run_command(const Arguments& given) {
  Arguments arguments = given;
  const std::string json = "(json)";
  const bool has_json = find_option(command_.command, "--json") != nullptr;
  if (find_option(command_.command, "--save-json") != nullptr) arguments.save_json = json;
  const auto run = [&](Report report) {
    arguments.report = report;
    const CapturedOutputs outputs({"-", json, kStandardError});
    const int status = command_.run(arguments);
    text_ = outputs.at("-");
    if (report == Report::text) json_ = outputs.at(json);
    notes_ = outputs.at(kStandardError);
    return status;
  };
  const int status = run(Report::text);
  if (has_json && json_.empty()) {
    std::string text = std::exchange(text_, {});
    run(Report::json);
    json_ = std::exchange(text_, std::move(text));
  }
  return status;
}

int Job::run_inputs() {
  const Option* const output = find_option(kInputs, "-o");
  const Arguments arguments = prepared({{output, "cases/"}}, true);
  const InputsOptions options = inputs_options(arguments);
  made_ = make_inputs(options);
  json_ = manifest_of(made_, options, "");
  return 0;
}

std::string Job::in_names(const std::string& text) const {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    // A message names the second input of check by its place on the command line, too.
    if (text.compare(i, 8, "OUTPUT y") == 0) i += 7;
    std::size_t end = i;
    if (text.compare(i, 2, "--") == 0) {
      end = i + 2;
      while (end < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '-')) {
        ++end;
      }
    }
    const std::string option = text.substr(i, end - i);
    if (option.empty() || find_option(kAllCommands, option) == nullptr) {
      result += text[i];
      continue;
    }
    const std::string name = with_underscores(option);
    // A tensor in memory is called as its option is.
    if (text.compare(end, name.size() + 1, ' ' + name) == 0) end += name.size() + 1;
    result += name;
    i = end - 1;
  }
  return result;
}

std::string Job::role_in(const std::string& text) const {
  std::string found;
  std::size_t first = text.npos;
  const auto try_role = [&](const std::string& role, std::string_view word) {
    const auto is_part = [&](std::size_t i) {
      return i < text.size() &&
             (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
    };
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
      // A message begins with what it is about, behind the input among several that it is beside.
      const bool is_subject = at == 0 || (at > 1 && text.compare(at - 2, 2, ": ") == 0);
      if (!is_subject || is_part(at + word.size())) continue;
      if (at < first) {
        first = at;
        found = role;
      }
      return;
    }
  };
  for (const RoleRow& row : kInputRoles) {
    if ((row.commands & command_.command) == 0) continue;
    try_role(std::string(row.name), row.word);
    try_role(std::string(row.name), row.name);
  }
  for (const Option& option : all_options()) {
    if ((option.commands & command_.command) == 0 || !is_tensor(option)) continue;
    const std::string word = with_underscores(option.name());
    try_role(word, word);
  }
  for (const ResultRow& row : kResults) {
    if ((row.commands & command_.command) != 0) try_role(std::string(row.name), row.name);
  }
  return found;
}

int option_kind(const CommandRow& command, const std::string& name) {
  if (find_role(command.command, name) != nullptr) return LNORM_TENSOR;
  const std::string word = with_dashes(name);
  const Option* const option = find_option(command.command, word);
  if (option == nullptr || option->set == nullptr) {
    const std::string opposite = concat("--no", word.substr(1));
    return find_option(command.command, opposite) != nullptr ? LNORM_NEGATED : LNORM_NO_OPTION;
  }
  if (is_of_program(command.command, *option)) return LNORM_OF_PROGRAM;
  if (is_tensor(*option)) return LNORM_TENSOR;
  return option->is_flag() ? LNORM_FLAG : option->repeats ? LNORM_REPEATED : LNORM_VALUE;
}

}  // namespace lnorm::app
