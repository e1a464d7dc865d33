#include <csignal>
#include <new>
#include <variant>

#include "arguments.hpp"
#include "commands.hpp"
#include "complain.hpp"
#include "lnorm/core/error.hpp"

int main(int argc, char** argv) {
  using namespace lnorm::app;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves is seen in write()
  try {
    const auto parsed = parse_arguments(argc, argv);
    if (const auto* done = std::get_if<Done>(&parsed)) return done->exit_status;
    return apply(std::get<ApplyArguments>(parsed));
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
