#include <fcntl.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "lnorm/io/os.hpp"
#include "mpi_ranks.hpp"
#include "program.hpp"
#include "terminal.hpp"

namespace {

const lnorm::app::Program kProgram{
    "lnorm-mpi", "mpirun -n N ",
    "lnorm-mpi is lnorm in several processes, on as many machines: apply, softmax,\n"
    "stats, compare and grad are done by all of them together, in the same bytes.\n"
    "Inputs and outputs are files that every process sees under the same name.\n",
    "Examples:\n"
    "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
    "  mpirun -n 1 lnorm-mpi x.json -o y.npy\n"
    "  mpirun -n 2 lnorm-mpi y.npy --rms -o z.npy --verbose"};

// What every rank would say, rank 0 says.
void be_quiet() {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDOUT_FILENO);
  ::close(nowhere);
  std::cerr.rdbuf(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  lnorm::app::set_up_process();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // without its launcher the job has ended
  lnorm::os::guard_temporaries();      // launchers kill
  lnorm::os::hide_terminals();         // mpirun has one for each process
  int threads = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
  lnorm::app::Ending ending;
  {
    lnorm::app::MpiRanks ranks;
    if (!ranks.is_first()) be_quiet();
    ending = ranks.end(lnorm::app::run_command(argc, argv, kProgram, ranks));
  }
  MPI_Finalize();
  return ending.message.empty() ? ending.status
                                : lnorm::app::print_error(ending.message, ending.hint);
}
