#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "arguments.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/run.hpp"
#include "terminal.hpp"

namespace lnorm::app {

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

}  // namespace lnorm::app
