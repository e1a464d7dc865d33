#pragma once

#include "support/commands.hpp"

// Runs lnorm-mpi as users do, by the launcher that CMake found.
namespace support {

struct Job {
  int ranks = 3;
  Words arguments;
  std::string directory = ".";
  // A shell command before each rank's program, which finds its number in $rank.
  std::string before = {};
};

// A launcher adds lines of its own to standard error.
Outcome run(const Job& job);

// How many ranks the tests take: 3, or those that CMake was told.
std::vector<int> rank_counts();

// The lines of lnorm itself.
Words lines_of_lnorm(const Outcome& outcome);

}  // namespace support
