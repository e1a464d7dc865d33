#pragma once

#include "arguments.hpp"

namespace lnorm::app {

// Each runs one command and returns the exit status; throws Error or ClosedPipe.
int apply(const ApplyArguments& arguments);

}  // namespace lnorm::app
