#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "check_given.hpp"
#include "commands.hpp"
#include "lnorm.h"
#include "lnorm/core/dtype_table.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/interruption.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/memory_tensor.hpp"
#include "lnorm/io/os.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/inputs.hpp"
#include "lnorm/report/style.hpp"
#include "program.hpp"
#include "terminal.hpp"

// lnorm.h: what it says is not repeated here.

using namespace lnorm;
using namespace lnorm::app;

namespace lnorm::app {

// An input of a command, which no option names. word: messages and reports call it so.
struct InputRole {
  Commands commands;
  std::string_view name;
  std::string_view word;
};

}  // namespace lnorm::app

namespace {

// The command has no such option, role or result.
class UnknownName : public Error {
 public:
  using Error::Error;
};

// lnorm_job_cancel ended the work.
class Canceled : public std::exception {
 public:
  const char* what() const noexcept override { return "canceled"; }
};

constexpr std::array kInputRoles{
    InputRole{kCompare, "actual", "actual"},
    InputRole{kCompare, "expected", "expected"},
    InputRole{kAllCommands & ~(kCompare | kInputs), "input", "x"},
    InputRole{kCheck, "output", "y"},
};

// The rows of a table that a command has.
template <class Row, std::size_t count>
std::vector<Row> of_command(Command command, const std::array<Row, count>& table) {
  std::vector<Row> rows;
  std::copy_if(table.begin(), table.end(), std::back_inserter(rows),
               [&](const Row& row) { return (row.commands & command) != 0; });
  return rows;
}

// The row of that name; null if there is none.
template <class Row>
const Row* find_row(const std::vector<Row>& rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

// They say how a terminal, a standard stream or an output file is used, which a job has none of.
constexpr std::array<std::string_view, 11> kOfProgram{
    "--color",    "--csv",   "--help",      "--json", "--name",   "--nan",
    "--progress", "--quiet", "--save-json", "--to",   "--verbose"};

// What a tensor in memory says itself.
constexpr std::array<std::string_view, 4> kOfFiles{"--as", "--from", "--offset", "--shape"};

bool is_of_program(Command command, const Option& option) {
  const std::vector<ResultRow> results = of_command(command, kResults);
  const auto is_it = [&](std::string_view name) { return option.has_name(name); };
  // inputs has options of these names for what it makes.
  return std::ranges::any_of(kOfProgram, is_it) ||
         (command != kInputs && std::ranges::any_of(kOfFiles, is_it)) ||
         std::any_of(results.begin(), results.end(),
                     [&](const ResultRow& row) { return option.has_name(row.option); });
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

// A command on tensors in memory, with the program's options. Names have no dashes in front, and "_" stands for "-" as well.
// Functions throw Error.
struct lnorm_job {
  explicit lnorm_job(const CommandRow& command) : command_(command) {
    arguments_ = initial_arguments(command.command);
    arguments_.color = When::never;
    arguments_.work.progress = When::never;
  }

  // From any thread.
  std::atomic<bool> canceled = false;

  // Of the last run: its report, and what was said on the way, of tensors that could not be done where others could.
  std::string text;
  std::string json;
  std::string notes;

  // Of the last call.
  std::string message;
  std::string hint;
  std::string role_at_fault;
  int fault = LNORM_OK;
  TensorInfo described;  // by lnorm_job_result

  // value: nothing for a flag.
  void set(const std::string& name, const std::optional<std::string>& value) {
    if (value && find_row(input_roles_, name) != nullptr) {
      inputs_[name] = *value;
      return;
    }
    const Option& option = option_of(name);
    if (option.is_flag() == value.has_value()) {
      throw Error(concat(option.name(), value ? " takes no value, found " : " takes a value",
                         value ? printable(*value) : ""));
    }
    planned_.clear();
    take_name(option, name);
    arguments_.take(option, value.value_or(""));
  }

  // member: the tensor's name among several; empty for one alone.
  void bind(const std::string& role, const std::string& member, Memory tensor) {
    std::string word;
    if (const InputRole* const row = find_row(input_roles_, role)) {
      inputs_[role] = word = row->word;
    } else {
      const Option& option = option_of(role);
      if (!is_tensor(option)) throw UnknownName(concat(option.name(), " takes no tensor"));
      take_name(option, role);
      word = with_underscores(option.name());
      // Several are paired with the inputs by their names.
      arguments_.take(option, member.empty() ? word : concat(word, ":{}"));
    }
    auto& tensors = tensors_[word];
    std::erase_if(tensors, [&](const auto& one) {
      return member.empty() || one.first.empty() || one.first == member;
    });
    tensor.info.name = member.empty() ? word : concat(word, ':', member);
    set_order(tensor);
    tensors.emplace_back(member, std::move(tensor));
    sets_.clear();
    planned_.clear();
  }

  bool has_judged_others() const { return arguments_.input.keep_going && !text.empty(); }

  void bind_result(const std::string& name, const Memory& memory) {
    option_of_result(name);
    if (has_overlaps(memory)) {
      throw Error(concat(name, ": has elements that share memory, expected a place for each"));
    }
    results_.insert_or_assign(name, memory);
    const auto planned = planned_.find(name);
    // Another dtype is that of other results as well.
    if (planned == planned_.end() || planned->second.dtype != memory.info.dtype) planned_.clear();
  }

  // Dtype and shape of a result, before the run; nothing if there is none with these options.
  std::optional<TensorInfo> result(const std::string& name) {
    // All of a command are planned at once: callers ask for one after another.
    std::vector<std::string> names;
    option_of_result(name);
    for (const ResultRow& row : of_command(command_.command, kResults)) {
      if (row.name == "mean" && !arguments_.normalization.options.formula.has_mean()) {
        if (name == row.name) return {};
        continue;
      }
      if (row.name == "sum" && name != row.name) continue;  // it needs a residual
      names.emplace_back(row.name);
    }
    if (const auto found = planned_.find(name); found != planned_.end()) return found->second;
    const auto plan = [&](const std::vector<std::string>& of) {
      Arguments arguments = prepared(with_results(of), false);
      std::vector<TensorInfo> planned;
      arguments.output.planned = &planned;
      command_.run(arguments);
      return planned;
    };
    try {
      const std::vector<TensorInfo> planned = plan(names);
      for (std::size_t i = 0; i < names.size(); ++i)
        planned_.insert_or_assign(names[i], planned[i]);
      return planned_.at(name);
    } catch (const Error&) {
      // What one of the others cannot be is no matter of this one.
      return plan({name}).back();
    }
  }

  // After the run of inputs: a tensor of a case.
  const MadeTensor* made(const std::string& name) const {
    for (const MadeCase& one : made_.cases) {
      for (const MadeTensor* const tensor :
           {&one.x, &one.weight, &one.bias, one.dy ? &*one.dy : nullptr}) {
        if (tensor != nullptr && tensor->info.name == name) return tensor;
      }
    }
    return nullptr;
  }

  // Returns the program's exit status. A job without results to bind or a report has an empty text.
  int run() {
    const Cancellation cancellation(canceled);
    throw_if_canceled();
    text.clear();
    json.clear();
    notes.clear();
    if (command_.command == kInputs && arguments_.output.path == "-") return run_inputs();
    ResultsInMemory places;
    std::vector<std::string> names;
    Detours detours;
    for (auto& [name, place] : results_) {
      if (name == "mean" && !arguments_.normalization.options.formula.has_mean()) {
        throw Error("mean: this norm subtracts none, so that there is no such result");
      }
      Memory memory = place;
      const bool is_read = std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& role) {
        return std::any_of(role.second.begin(), role.second.end(),
                           [&](const auto& member) { return overlap(memory, member.second); });
      });
      if (is_read) memory = detours.around(memory);
      ask_for_large_pages(memory);
      for (const auto& [other, its] : results_) {
        if (other != name && overlap(place, its)) {
          throw Error(
              concat(name, " and ", other, " lie among each other, expected a place for each"));
        }
      }
      places.emplace(place_of(name), memory);
      names.push_back(name);
    }
    Arguments arguments = prepared(with_results(names), true);
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

  // The program's words with the job's names: "--eps-on" is eps_on.
  std::string in_names(const std::string& words) const {
    std::string result;
    for (std::size_t i = 0; i < words.size(); ++i) {
      // A message names the second input of check by its place on the command line, too.
      if (words.compare(i, 8, "OUTPUT y") == 0) i += 7;
      std::size_t end = i;
      if (words.compare(i, 2, "--") == 0) {
        end = i + 2;
        while (end < words.size() &&
               (std::isalnum(static_cast<unsigned char>(words[end])) != 0 || words[end] == '-')) {
          ++end;
        }
      }
      const std::string option = words.substr(i, end - i);
      if (option.empty() || find_option(kAllCommands, option) == nullptr) {
        result += words[i];
        continue;
      }
      const std::string name = with_underscores(option);
      // A tensor in memory is called as its option is.
      if (words.compare(end, name.size() + 1, ' ' + name) == 0) end += name.size() + 1;
      result += name;
      i = end - 1;
    }
    return result;
  }

  // The role that words in these names speak of first; empty if they speak of none.
  std::string role_in(const std::string& words) const {
    std::string found;
    std::size_t first = words.npos;
    const auto try_role = [&](const std::string& role, std::string_view word) {
      const auto is_part = [&](std::size_t i) {
        return i < words.size() &&
               (std::isalnum(static_cast<unsigned char>(words[i])) != 0 || words[i] == '_');
      };
      for (std::size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
        // A message begins with what it is about, behind the input among several that it is beside.
        const bool is_subject = at == 0 || (at > 1 && words.compare(at - 2, 2, ": ") == 0);
        if (!is_subject || is_part(at + word.size())) continue;
        if (at < first) {
          first = at;
          found = role;
        }
        return;
      }
    };
    for (const InputRole& row : input_roles_) {
      try_role(std::string(row.name), row.word);
      try_role(std::string(row.name), row.name);
    }
    for (const Option& option : all_options()) {
      if ((option.commands & command_.command) == 0 || !is_tensor(option)) continue;
      const std::string word = with_underscores(option.name());
      try_role(word, word);
    }
    for (const ResultRow& row : of_command(command_.command, kResults)) {
      try_role(std::string(row.name), row.name);
    }
    return found;
  }

 private:
  const Option& option_of(const std::string& name) const {
    const std::string option = with_dashes(name.starts_with("--") ? name.substr(2) : name);
    const auto has_meaning = [&](const Option& one) {
      return one.set != nullptr && !is_of_program(command_.command, one);
    };
    const Option* const found = find_option(command_.command, option);
    if (found != nullptr && has_meaning(*found)) return *found;
    if (found == nullptr) {
      try {
        fail_option(command_.command, option);
      } catch (const Error& error) {
        // A hint may name an option that has no meaning here.
        constexpr std::string_view kHere = "here it is ";
        const bool is_here = error.hint().starts_with(kHere);
        const std::string other = is_here ? error.hint().substr(kHere.size()) : "";
        const Option* const hinted =
            find_option(command_.command, other.substr(0, other.find(' ')));
        if (hinted == nullptr || has_meaning(*hinted)) {
          throw UnknownName(concat("there is no option ", printable(name)), error);
        }
      }
    }
    throw UnknownName(concat(option, " has no meaning here: results and reports are in memory"));
  }

  // An option may be set again by the same name. By another of its names it is a mistake.
  void take_name(const Option& option, const std::string& name) {
    const std::string& first = names_.emplace(&option, with_dashes(name)).first->second;
    if (first == with_dashes(name) || option.repeats) return;
    throw Error(concat(option.name(), " is given twice, as ", first, " and ", with_dashes(name)));
  }

  void check_inputs(const Arguments& arguments) const {
    const bool is_backward = arguments.tensors.contains(TensorRole::dy);
    for (const TensorRole role :
         {TensorRole::actual_dx, TensorRole::actual_dweight, TensorRole::actual_dbias}) {
      if (is_backward || !arguments.tensors.contains(role)) continue;
      throw Error(
          concat("dy is missing: ", with_underscores(role_row(role).option), " is judged by it"));
    }
    for (const InputRole& role : input_roles_) {
      const std::string name(role.name);
      if (inputs_.contains(name)) continue;
      if (arguments.lists_kernels || (name == "output" && is_backward)) continue;
      throw Error(concat(name, " is missing: nothing is bound to it"));
    }
    const auto x = tensors_.find("x");
    if (writes_tensors() && x != tensors_.end() && x->second.size() > 1) {
      throw Error(concat("input: lnorm ", command_.name, " takes one tensor here, found ",
                         x->second.size()));
    }
  }

  bool writes_tensors() const {
    return (command_.command & (kApply | kSoftmax | kConvert | kGrad)) != 0;
  }

  Arguments with_results(const std::vector<std::string>& names) const {
    Arguments arguments = arguments_;
    for (const std::string& name : names) {
      arguments.take(*option_of_result(name), place_of(name));
    }
    return arguments;
  }

  // The arguments as the command line would give them. are_all: they have all that the command will write, so that an option
  // without effect is an error.
  Arguments prepared(Arguments arguments, bool are_all) {
    if (!arguments.linewidth) arguments.linewidth = Style::kAnyWidth;
    for (const InputRole& role : input_roles_) {
      const auto input = inputs_.find(std::string(role.name));
      if (input != inputs_.end()) arguments.words.push_back(input->second);
    }
    check_inputs(arguments);
    if (are_all) check_options(arguments);
    check_arguments(arguments);
    if (!arguments.output.dtype) {
      // Results that have a place say their dtypes.
      for (const auto& [name, place] : results_) {
        const DType of_place = place.info.dtype;
        const bool is_quantized = arguments.quantization && of_place == DType::int8;
        if (name == "mean" || name == "rstd" || !(is_floating(of_place) || is_quantized)) continue;
        const bool is_parameter = name == "dweight" || name == "dbias";
        auto& dtype = is_parameter ? arguments.parameter_dtype : arguments.output.dtype;
        if (name != "sum" && name != "scale") dtype = place.info.dtype;
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
      arguments.input.options.files->insert_or_assign(set->name(),
                                                      OpenSet{set, Format::npy, false});
    }
    return arguments;
  }

  // That names it for the program.
  const Option* option_of_result(const std::string& name) const {
    const std::vector<ResultRow> results = of_command(command_.command, kResults);
    if (const ResultRow* const row = find_row(results, name)) {
      return find_option(command_.command, row->option);
    }
    throw UnknownName(concat("lnorm ", command_.name, " has no result ", printable(name)));
  }

  int run_command(Arguments arguments) {
    const std::string place = "(json)";
    const bool has_json = find_option(command_.command, "--json") != nullptr;
    if (find_option(command_.command, "--save-json") != nullptr) arguments.save_json = place;
    const auto run = [&](Report report) {
      arguments.report = report;
      const CapturedOutputs outputs({"-", place, kStandardError});
      const int status = command_.run(arguments);
      text = outputs.at("-");
      if (report == Report::text) json = outputs.at(place);
      notes = outputs.at(kStandardError);
      return status;
    };
    const int status = run(Report::text);
    if (has_json && json.empty()) {
      std::string kept = std::exchange(text, {});
      run(Report::json);
      json = std::exchange(text, std::move(kept));
    }
    return status;
  }

  int run_inputs() {
    Arguments arguments = arguments_;
    arguments.take(*find_option(kInputs, "-o"), "cases/");
    const InputsOptions options = inputs_options(prepared(std::move(arguments), true));
    made_ = make_inputs(options);
    json = manifest_of(made_, options, "");
    return 0;
  }

  const CommandRow& command_;
  const std::vector<InputRole> input_roles_ = of_command(command_.command, kInputRoles);
  Arguments arguments_;
  std::map<const Option*, std::string> names_;  // by which options were given
  std::map<std::string, std::string> inputs_;   // words of the command line, by their roles
  std::map<std::string, std::vector<std::pair<std::string, Memory>>> tensors_;  // by those words
  std::vector<std::shared_ptr<const TensorSet>> sets_;
  std::map<std::string, Memory> results_;
  std::map<std::string, TensorInfo> planned_;  // what is known of results
  MadeInputs made_;
};

namespace {

void fail(lnorm_job& job, int fault, const std::string& message, const std::string& hint = {}) {
  job.fault = fault;
  job.message = job.in_names(message);
  // A command line is of no use here.
  if (hint.find("lnorm ") == hint.npos) job.hint = job.in_names(hint);
  job.role_at_fault = job.role_in(job.message);
}

void fail_for_memory(lnorm_job& job) noexcept {
  job.fault = LNORM_NO_MEMORY;
  job.message = "no memory left";  // short enough to need none
}

// Calls work, which returns a status; 2 after an error, which is kept.
template <class Work>
int guarded(lnorm_job* job, Work work) noexcept {
  if (job == nullptr) return 2;
  try {
    job->message.clear();
    job->hint.clear();
    job->role_at_fault.clear();
    job->fault = LNORM_OK;
    try {
      return work();
    } catch (const UnknownName& error) {
      fail(*job, LNORM_UNKNOWN, error.what(), hint_of(error));
    } catch (const SystemError& error) {
      fail(*job, LNORM_SYSTEM, error.what(), hint_of(error));
    } catch (const Error& error) {
      fail(*job, LNORM_INVALID, error.what(), hint_of(error));
    } catch (const Canceled& error) {
      fail(*job, LNORM_CANCELED, error.what());
    }
  } catch (const std::length_error&) {  // a vector longer than any can be
    fail_for_memory(*job);
  } catch (const std::bad_alloc&) {
    fail_for_memory(*job);
  } catch (const std::exception& error) {
    job->fault = LNORM_INVALID;
    job->message = error.what();
  }
  return 2;
}

int option_kind(const CommandRow& command, const std::string& name) {
  if (find_row(of_command(command.command, kInputRoles), name) != nullptr) return LNORM_TENSOR;
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

const char* given(const char* name, const char* what) {
  if (name == nullptr) throw Error(concat(what, " is a null pointer, expected a name"));
  return name;
}

// Whether no element is farther away than memory is large.
bool are_near(const Memory& memory) {
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  std::int64_t left = kFar;
  for (std::size_t i = 0; i < memory.strides.size(); ++i) {
    const std::int64_t steps = std::max<std::int64_t>(0, memory.info.shape[i] - 1);
    const std::int64_t stride = memory.strides[i];
    if (steps == 0) continue;
    if (stride <= -kFar || stride >= kFar || std::abs(stride) > left / steps) return false;
    left -= std::abs(stride) * steps;
  }
  return true;
}

Memory memory_of(const std::string& name, const lnorm_tensor* tensor) {
  const auto check = [&](bool is_right, const auto&... found) {
    if (!is_right) throw Error(concat(name, ": ", found...));
  };
  check(tensor != nullptr, "is a null pointer, expected a tensor");
  const char* const dtype_name = tensor->dtype == nullptr ? "" : tensor->dtype;
  const auto dtype = parse_dtype(dtype_name);
  const auto is_any = [](DType one) { return one != DType::float64_pair; };
  if (!dtype || !is_any(*dtype)) {
    check(false, "has dtype '", printable(dtype_name), "', expected ", dtype_list(is_any));
  }
  check(tensor->ndim >= 0 && tensor->ndim <= static_cast<int>(kMaxDims), "has ", tensor->ndim,
        " axes, expected 0 to ", kMaxDims);
  check(tensor->ndim == 0 || tensor->shape != nullptr, "has no shape");
  Memory memory;
  memory.info = {name, *dtype, {tensor->shape, tensor->shape + tensor->ndim}};
  const Shape& shape = memory.info.shape;
  check(std::all_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent >= 0; }),
        "has shape ", to_string(shape), ", expected extents of 0 or more");
  const auto count = checked_product(shape);
  check(count && *count <= std::numeric_limits<std::int64_t>::max() / 8, "has shape ",
        to_string(shape), ", which has more elements than memory");
  check(tensor->data != nullptr || *count == 0, "has no data");
  check((tensor->flags & ~std::uint32_t{LNORM_SWAPPED | LNORM_READ_ONLY}) == 0, "has flags ",
        tensor->flags, ", expected LNORM_SWAPPED and LNORM_READ_ONLY alone");
  if ((tensor->flags & LNORM_SWAPPED) != 0) {
    memory.info.byte_order =
        std::endian::native == std::endian::little ? std::endian::big : std::endian::little;
  }
  memory.data = static_cast<std::byte*>(tensor->data);
  memory.strides = c_strides(memory.info);
  if (tensor->strides != nullptr) {
    std::copy_n(tensor->strides, memory.strides.size(), memory.strides.begin());
  }
  check(*count == 0 || are_near(memory), "has strides that leave memory");
  return memory;
}

int bind(lnorm_job* job, const char* role, const char* member, const lnorm_tensor* tensor) {
  return guarded(job, [&] {
    const std::string of = given(role, "the role");
    job->bind(of, given(member, "the name"), memory_of(of, tensor));
    return 0;
  });
}

}  // namespace

const char* lnorm_version(void) { return LNORM_VERSION; }

int lnorm_option_kind(const char* command, const char* option) {
  if (command == nullptr || option == nullptr) return LNORM_NO_OPTION;
  try {
    const CommandRow* const row = find_command(command);
    return row == nullptr ? LNORM_NO_OPTION : option_kind(*row, option);
  } catch (const std::exception&) {
    return LNORM_NO_OPTION;
  }
}

lnorm_job* lnorm_job_new(const char* command) {
  if (command == nullptr) return nullptr;
  try {
    const CommandRow* const row = find_command(command);
    // show lists a file, and report writes one.
    const bool is_there = row != nullptr && (row->command & (kShow | kReport)) == 0;
    return !is_there ? nullptr : std::make_unique<lnorm_job>(*row).release();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void lnorm_job_free(lnorm_job* job) { const std::unique_ptr<lnorm_job> owner(job); }

int lnorm_job_set(lnorm_job* job, const char* option, const char* value) {
  return guarded(job, [&] {
    job->set(given(option, "the option"),
             value == nullptr ? std::nullopt : std::optional<std::string>(value));
    return 0;
  });
}

int lnorm_job_bind(lnorm_job* job, const char* role, const lnorm_tensor* tensor) {
  return bind(job, role, "", tensor);
}

int lnorm_job_bind_member(lnorm_job* job, const char* role, const char* name,
                          const lnorm_tensor* tensor) {
  return bind(job, role, name, tensor);
}

int lnorm_job_result(lnorm_job* job, const char* result, lnorm_tensor* tensor) {
  return guarded(job, [&] {
    if (tensor == nullptr) throw Error("the tensor to describe is a null pointer");
    *tensor = {};
    const MadeTensor* const made = job->made(given(result, "the result"));
    if (made == nullptr) {
      const auto info = job->result(result);
      if (!info) return 1;
      job->described = *info;
    } else {
      job->described = made->info;
      tensor->data = const_cast<std::byte*>(made->elements.data());
      tensor->flags = LNORM_READ_ONLY;
    }
    tensor->dtype = name(job->described.dtype).data();
    tensor->ndim = static_cast<std::int32_t>(job->described.shape.size());
    tensor->shape = job->described.shape.data();
    return 0;
  });
}

int lnorm_job_bind_result(lnorm_job* job, const char* result, const lnorm_tensor* tensor) {
  return guarded(job, [&] {
    const Memory memory = memory_of(given(result, "the result"), tensor);
    if ((tensor->flags & LNORM_READ_ONLY) != 0) {
      throw Error(concat(result, ": is read-only, expected a tensor to write to"));
    }
    if ((tensor->flags & LNORM_SWAPPED) != 0) {
      throw Error(
          concat(result, ": is not in the machine's byte order, expected a tensor that is"));
    }
    job->bind_result(result, memory);
    return 0;
  });
}

int lnorm_job_run(lnorm_job* job) {
  return guarded(job, [&] {
    const int status = job->run();
    // Where others were judged the errors are in the report.
    if (status == 2 && !job->has_judged_others()) fail(*job, LNORM_INVALID, job->notes);
    return status;
  });
}

void lnorm_job_cancel(lnorm_job* job) {
  if (job != nullptr) job->canceled = true;
}

const char* lnorm_job_text(const lnorm_job* job) { return job ? job->text.c_str() : ""; }
const char* lnorm_job_json(const lnorm_job* job) { return job ? job->json.c_str() : ""; }
const char* lnorm_job_error(const lnorm_job* job) { return job ? job->message.c_str() : ""; }
const char* lnorm_job_hint(const lnorm_job* job) { return job ? job->hint.c_str() : ""; }
const char* lnorm_job_role_at_fault(const lnorm_job* job) {
  return job ? job->role_at_fault.c_str() : "";
}
int lnorm_job_fault(const lnorm_job* job) { return job ? job->fault : LNORM_INVALID; }

int lnorm_main(int argc, const char* const* argv) {
  if (argc < 1 || argv == nullptr) return 2;
  set_up_process();
  return run_program(argc, argv);
}
