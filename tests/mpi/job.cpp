#include "job.hpp"

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
  command.arguments += job.arguments;
  command.directory = job.directory;
  // Open MPI's launcher removes the folder of its sessions in TMPDIR while another may create its
  // own there: each has one for itself.
  const TempDir sessions;
  // Open MPI runs more ranks than there are processors, and for root, only if it is told to.
  command.environment = {{"TMPDIR", sessions.path().string()},
                         {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                         {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},  // Open MPI 5
                         {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                         {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  return run(command);
}

std::vector<int> rank_counts() { return {LNORM_MPI_RANKS}; }

Words lines_of_lnorm(const Outcome& outcome) {
  Words lines;
  for (const std::string& line : lines_of(outcome.err)) {
    if (line.starts_with("lnorm: ") || line.starts_with("hint: ")) lines.push_back(line);
  }
  return lines;
}

}  // namespace support
