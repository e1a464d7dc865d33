#pragma once

#include <string_view>

#include "arguments.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm::app {

// Prints how the data will go, and why, in one line on standard error, if --verbose is given. sink: null if
// there is none. kernel: empty if there is no choice.
void tell_route(const WorkArguments& work, const Plan& plan, const TensorSource& source,
                const TensorSink* sink, std::string_view kernel = {});

// The same for several sources. makes_detour: whether a temporary file is on the way.
void tell_route(const WorkArguments& work, const Plan& plan, bool makes_detour,
                std::string_view kernel, const TensorSink* sink = nullptr);

}  // namespace lnorm::app
