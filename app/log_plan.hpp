#pragma once

#include <string>
#include <string_view>

#include "arguments.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm::app {

// ", 3 ranks" if several do parts of a tensor, ", 1 of 3 ranks" if one does all of it; empty if the job has one.
// are_distributed: whether several do parts.
std::string ranks_text(const WorkArguments& work, bool are_distributed);

// Prints how the data will go, and why, in one line on standard error, if --verbose is given. sink: null if
// there is none. kernel: empty if there is no choice. others_are_distributed: whether several ranks write parts of all other
// outputs.
void log_plan(const WorkArguments& work, const Plan& plan, const TensorSource& source,
              const TensorSink* sink, std::string_view kernel = {},
              bool others_are_distributed = true);

// The same for several sources.
struct Way {
  bool uses_temporary_file;  // whether a temporary file is on the way
  bool are_distributed;      // as of ranks_text
};
void log_plan(const WorkArguments& work, const Plan& plan, Way way, std::string_view kernel,
              const TensorSink* sink = nullptr);

}  // namespace lnorm::app
