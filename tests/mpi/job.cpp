#include "job.hpp"

#include <sstream>

namespace support {

Outcome run(const Job& job) {
  const std::string script =
      "rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n" + job.before + "\nexec \"$@\"";
  Command command;
  command.program = LNORM_MPIEXEC;
  command.arguments = {LNORM_MPIEXEC_NUMPROC_FLAG,
                       std::to_string(job.ranks),
                       "sh",
                       "-c",
                       script,
                       "sh",
                       LNORM_MPI_BINARY};
  command.arguments.insert(command.arguments.end(), job.arguments.begin(), job.arguments.end());
  command.directory = job.directory;
  // Open MPI runs more ranks than there are processors, and for root, only if it is told to.
  command.environment = {{"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                         {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},  // Open MPI 5
                         {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                         {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  return run(command);
}

std::vector<int> rank_counts() { return {LNORM_MPI_RANKS}; }

std::vector<std::string> lines_of_lnorm(const Outcome& outcome) {
  std::vector<std::string> lines;
  std::istringstream all(outcome.err);
  for (std::string line; std::getline(all, line);) {
    if (line.starts_with("lnorm: ") || line.starts_with("hint: ")) lines.push_back(line);
  }
  return lines;
}

}  // namespace support
