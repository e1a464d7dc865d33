#include <fcntl.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "complain.hpp"
#include "lnorm/io/os.hpp"
#include "mpi_ranks.hpp"
#include "set_up_process.hpp"

namespace {

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
    ending = ranks.end(lnorm::app::run_command(argc, argv, ranks));
  }
  MPI_Finalize();
  return ending.message.empty() ? ending.status : lnorm::app::complain(ending.message, ending.hint);
}
