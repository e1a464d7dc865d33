#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "arguments.hpp"
#include "lnorm/core/axes.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/ranks.hpp"
#include "lnorm/pipeline/run.hpp"
#include "outputs.hpp"
#include "terminal.hpp"

// The loop over tensors, of every command: plan all, open the outputs, work on one after another, commit.
namespace lnorm::app {

// Some rows of a tensor with these normalized axes.
struct RowChoice {
  Axes axes;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Which rows of x, from what its header says. Empty: the tensor as it is.
using ChooseRows = std::function<RowChoice(const TensorInfo& x)>;

// The rows of a range. As in a slice of Python there may be none: an array of jobs may end so.
RowChoice rows_in(const RowRange& range, const TensorInfo& x, const NormalizedAxes& axes);

// The same for each tensor. The axes must outlive what is returned.
ChooseRows rows_in(const std::optional<RowRange>& range, const NormalizedAxes& axes);

// What is chosen of x.
TensorInfo chosen(const ChooseRows& choose, const TensorInfo& x);
std::unique_ptr<TensorSource> chosen(const ChooseRows& choose, std::unique_ptr<TensorSource> x);

// A tensor among those that a command works on.
struct InputName {
  std::string name;   // in its set
  std::string title;  // for a report (Selected)
  Captures captures;
  bool several = false;  // there are others
};

// ", 3 ranks" if several do parts of a tensor, ", 1 of 3 ranks" if one does all of it; empty if the job has one.
// are_distributed: whether several do parts.
std::string ranks_text(const WorkArguments& work, bool are_distributed);

// The work on one tensor: who does it, and what is told of it.
class TensorWork {
 public:
  // ranks: those of the job that do this tensor.
  TensorWork(const WorkArguments& job, Ranks& ranks, When progress)
      : job_(job), ranks_(ranks), progress_(progress) {}

  int threads() const noexcept { return job_.threads; }
  bool has_report() const noexcept { return ranks_.is_first(); }  // or another rank has it

  // Prints how the data will go, and why, in one line on standard error, if --verbose is given, and begins the line of
  // progress. The result is for the loop, and valid until end(). sink: null if there is none. kernel: empty if there is
  // no choice. others_take_parts: whether several ranks write parts of all other outputs.
  RunOptions begin(const Plan& plan, const TensorSource& source, const TensorSink* sink = nullptr,
                   std::string_view kernel = {}, bool others_take_parts = true);

  // Does so for several sources, of which x is the one to show.
  struct Way {
    bool uses_temporary_file;  // whether a temporary file is on the way
    bool takes_parts;          // whether several ranks can do a part each
  };
  RunOptions begin(const Plan& plan, Way way, const TensorInfo& x, std::string_view kernel,
                   const TensorSink* sink = nullptr);

  // Takes the line of progress away.
  void end() { line_.reset(); }

 private:
  void log(const Plan& plan, Way way, std::string_view kernel, const TensorSink* sink) const;

  const WorkArguments& job_;
  Ranks& ranks_;
  When progress_;
  std::optional<ProgressLine> line_;
};

struct Work {
  // Decides, before an element is read, what becomes of a tensor: returns what each output gets of it. Throws
  // Error if it cannot be done.
  std::function<std::vector<TensorInfo>(const TensorInfo& x, const InputName& name)> plan;
  // Does it. The outputs have begun the tensor.
  std::function<void(OpenedTensor& input, const InputName& name, TensorWork& work)> run;
  Deal deal = Deal::together;  // if the outputs let them
  ChooseRows rows = {};        // plan and run see these as the tensor; empty: those of --rows
  // Is told of a tensor of several that cannot be done, by the name that reports call it, after the error is printed.
  std::function<void(const std::string& name, const Error& error)> failed = {};
};

using Inputs = std::variant<Selection, TensorLines>;

// The tensors of a selection by the names that reports call them.
NamedTensors named(const Selection& selection);

// Works on all inputs. Returns the exit status: with --keep-going a tensor that cannot be done is told of, and the others are
// done. Throws Error.
int for_each_tensor(const Inputs& inputs, Outputs& outputs, const Arguments& arguments, Work work);

// Has an object do all inputs: results() and run() are the work's plan and run.
template <class Worker>
int work_on_each(const Inputs& inputs, Outputs& outputs, const Arguments& arguments,
                 Worker& worker) {
  return for_each_tensor(
      inputs, outputs, arguments,
      {[&](const TensorInfo& x, const InputName& name) { return worker.results(x, name); },
       [&](OpenedTensor& input, const InputName& name, TensorWork& work) {
         worker.run(input, name, work);
       },
       Deal::by_size});
}

// Of a command that has no outputs: check(x, name) throws Error if a tensor cannot be looked at, run does so.
template <class Check, class Run>
int look_at_each_by(const Inputs& inputs, const Arguments& arguments, Check check, Run run,
                    Deal deal = Deal::together, const ChooseRows& rows = {},
                    decltype(Work::failed) failed = {}) {
  const auto plan = [&](const TensorInfo& x, const InputName& name) {
    check(x, name);
    return std::vector<TensorInfo>();
  };
  Outputs none({}, arguments);
  return for_each_tensor(inputs, none, arguments, Work{plan, run, deal, rows, std::move(failed)});
}

// The same by an object.
template <class Looker>
int look_at_each(const Inputs& inputs, const Arguments& arguments, Looker& looker,
                 const ChooseRows& rows = {}) {
  decltype(Work::failed) failed;
  if constexpr (requires(const Error& error) { looker.failed("", error); }) {
    failed = [&](const std::string& name, const Error& error) { looker.failed(name, error); };
  }
  return look_at_each_by(
      inputs, arguments, [&](const TensorInfo& x, const InputName& name) { looker.check(x, name); },
      [&](OpenedTensor& input, const InputName& name, TensorWork& work) {
        looker.run(input, name, work);
      },
      Deal::together, rows, std::move(failed));
}

// Throws Error, which says how to name one or all, for a file of several tensors of which none is named.
void check_named(const Inputs& inputs);

// An error of one tensor of several: it says how the others are done, if it has no other hint.
Error with_way_on(const Error& error);

// Throws Error if --as is given, but x has another dtype.
void check_as(std::optional<DType> as, const TensorInfo& x);

// Throws Error if rows of no elements, which cost the input nothing, are too many to say something of each. what: is
// said of them, for the message.
void check_empty_rows(const Plan& plan, const std::string& name, std::string_view what);

}  // namespace lnorm::app
