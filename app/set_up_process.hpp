#pragma once

namespace lnorm::app {

// Standard streams and signals, as a program has them that may be anywhere in a pipe and leaves no temporary file behind.
void set_up_process();

}  // namespace lnorm::app
