#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "check_given.hpp"
#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/io/memory_tensor.hpp"
#include "lnorm/pipeline/inputs.hpp"

namespace lnorm::app {

// The command has no such option, role or result.
class UnknownName : public Error {
 public:
  using Error::Error;
};

// Job::cancel ended the work.
class Canceled : public std::exception {
 public:
  const char* what() const noexcept override { return "canceled"; }
};

// A command on tensors in memory, with the program's options: what lnorm.h offers. Names have no dashes in front, and "_" stands
// for "-" as well. Functions throw Error.
class Job {
 public:
  explicit Job(const CommandRow& command);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // value: nothing for a flag.
  void set(const std::string& name, const std::optional<std::string>& value);

  // member: the tensor's name among several; empty for one alone.
  void bind(const std::string& role, const std::string& member, Memory tensor);
  void bind_result(const std::string& name, const Memory& memory);

  // Dtype and shape of a result, before the run; nothing if there is none with these options. After the run of inputs: a tensor
  // of a case.
  std::optional<TensorInfo> result(const std::string& name);
  const MadeTensor* made(const std::string& name) const;

  // Returns the program's exit status. A job without results to bind or a report has an empty text.
  int run();

  // From any thread.
  void cancel() noexcept { canceled_ = true; }

  const std::string& text() const noexcept { return text_; }
  const std::string& json() const noexcept { return json_; }
  // What was said on the way: of tensors that could not be done where others could.
  const std::string& notes() const noexcept { return notes_; }

  // The program's words with the job's names: "--eps-on" is eps_on.
  std::string in_names(const std::string& text) const;
  // The role that a text in these names speaks of first; empty if it speaks of none.
  std::string role_in(const std::string& text) const;

 private:
  struct Place {
    const Option* option;  // that names it for the program
    Memory memory;
  };

  const Option& option_of(const std::string& name) const;
  void use(Arguments& arguments, Given& given, const Option& option, const std::string& word) const;
  [[noreturn]] void fail_result(const std::string& name) const;
  // are_all: these are all that the command will write, so that an option without effect is an error.
  Arguments prepared(const std::vector<std::pair<const Option*, std::string>>& results,
                     bool are_all);
  void take_name(const Option& option, const std::string& name);
  void check_inputs(const Arguments& arguments) const;
  bool writes_tensors() const;
  int run_inputs();
  int run_command(const Arguments& arguments);

  const CommandRow& command_;
  Given given_;
  Arguments arguments_;
  std::map<const Option*, std::string> names_;  // by which options were given
  std::map<std::string, std::string> inputs_;   // words of the command line, by their roles
  std::map<std::string, std::vector<std::pair<std::string, Memory>>> tensors_;  // by those words
  std::vector<std::shared_ptr<const TensorSet>> sets_;
  std::map<std::string, Place> results_;
  std::map<std::string, TensorInfo> planned_;  // what is known of results
  std::atomic<bool> canceled_ = false;
  MadeInputs made_;
  std::string text_;
  std::string json_;
  std::string notes_;
};

// What lnorm_option_kind says.
int option_kind(const CommandRow& command, const std::string& name);

}  // namespace lnorm::app
