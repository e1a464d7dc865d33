#pragma once

#include "arguments.hpp"

namespace lnorm::app {

// Each runs one command and returns the exit status; throws Error or ClosedPipe.
int apply(const ApplyArguments& arguments);
int stats(const StatsArguments& arguments);
int compare(const CompareArguments& arguments);
int softmax(const SoftmaxArguments& arguments);
int grad(const GradArguments& arguments);
int explain(const ExplainArguments& arguments);
int show(const ShowArguments& arguments);
int report(const ReportArguments& arguments);

}  // namespace lnorm::app
