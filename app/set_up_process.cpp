#include "set_up_process.hpp"

#include <csignal>

#include "lnorm/io/os.hpp"

namespace lnorm::app {

namespace {

extern "C" void end_by_signal(int signal) {
  os::remove_temporaries();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void handle_signals() {
  // A reader that leaves and a file that grows beyond its limit are seen in write().
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    // What whoever started us has chosen to ignore (nohup) stays ignored.
    if (std::signal(signal, end_by_signal) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

}  // namespace

void set_up_process() {
  os::hold_standard_streams();
  handle_signals();
}

}  // namespace lnorm::app
