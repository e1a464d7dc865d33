#include "program.hpp"

#include <malloc.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <variant>

#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/os.hpp"
#include "terminal.hpp"

namespace lnorm::app {

namespace {

int run(Arguments& arguments, Ranks& ranks) {
  const CommandRow& row = command_row(arguments.command);
  if (row.on_all_ranks) {
    arguments.work.ranks = &ranks;
  } else if (arguments.work.verbose && ranks.count() > 1) {
    print_note(concat("1 of ", ranks.count(), " ranks"));
  }
  if (!row.on_all_ranks && !ranks.is_first()) return 0;
  const int status = row.run(arguments);
  // What is found of tensors, rank 0 tells. The status of another one is that of a rank.
  return ranks.is_first() ? status : 0;
}

extern "C" void end_by_signal(int signal) {
  os::remove_temporaries();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void handle_signals() {
  // A reader that leaves and a file that grows beyond its limit are seen in write().
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : os::kEndingSignals) {
    // What whoever started us has chosen to ignore (nohup) stays ignored.
    if (std::signal(signal, end_by_signal) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

// Where a limit on memory is used up the stack cannot grow, which no handler sees: so it has its room from the start.
[[gnu::noinline]] void reserve_stack() {
  constexpr std::size_t kRoom = std::size_t{256} << 10;
  std::array<std::byte, kRoom> room;
  *static_cast<volatile std::byte*>(room.data()) = std::byte{};
}

// Freed buffers stay for the next tensor. The system would zero their pages again, which takes longer than reading a tensor into them.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 16 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
}

}  // namespace

Ending run_command(int argc, const char* const* argv, const Program& program, Ranks& ranks) {
  try {
    std::variant<Arguments, Done> parsed = parse_arguments(argc, argv, program);
    check_same(ranks, "the command line", {argv + 1, argv + argc}, "word");
    if (const Done* const done = std::get_if<Done>(&parsed)) return {done->exit_status, "", ""};
    return {run(std::get<Arguments>(parsed), ranks), "", ""};
  } catch (const ClosedPipe&) {
    return {};
  } catch (const RankFailure&) {
    return {2, "", ""};
  } catch (const Error& error) {
    return {2, error.what(), hint_of(error)};
  } catch (const std::bad_alloc&) {
    return {2, "not enough memory", ""};
  } catch (const std::length_error&) {  // a vector longer than any can be
    return {2, "not enough memory", ""};
  } catch (const std::exception& error) {
    return {2, error.what(), ""};
  }
}

int run_program(int argc, const char* const* argv) {
  const Ending ending = run_command(argc, argv, kLnorm, sole_rank());
  return ending.message.empty() ? ending.status : print_error(ending.message, ending.hint);
}

void set_up_process() {
  keep_freed_memory();
  reserve_stack();
  os::hold_standard_streams();
  handle_signals();
}

}  // namespace lnorm::app
