#include <csignal>
#include <new>
#include <variant>

#include "arguments.hpp"
#include "commands.hpp"
#include "complain.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/io/os.hpp"

namespace {

using namespace lnorm::app;

struct Run {
  int operator()(const ApplyArguments& arguments) const { return apply(arguments); }
  int operator()(const StatsArguments& arguments) const { return stats(arguments); }
  int operator()(const CompareArguments& arguments) const { return compare(arguments); }
  int operator()(const SoftmaxArguments& arguments) const { return softmax(arguments); }
  int operator()(const ShowArguments& arguments) const { return show(arguments); }
  int operator()(const Done& done) const { return done.exit_status; }
};

extern "C" void end_by_signal(int signal) {
  lnorm::os::remove_temporaries();
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

int main(int argc, char** argv) {
  lnorm::os::hold_standard_streams();
  handle_signals();
  try {
    return std::visit(Run{}, parse_arguments(argc, argv));
  } catch (const lnorm::ClosedPipe&) {
    return 0;
  } catch (const lnorm::Error& error) {
    return complain(error.what(), error.hint());
  } catch (const std::bad_alloc&) {
    return complain("not enough memory");
  } catch (const std::exception& error) {
    return complain(error.what());
  }
}
