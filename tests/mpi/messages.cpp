// Several processes under a launcher: messages that are longer than one may be arrive whole and in order.

#include <mpi.h>

#include <cstdio>
#include <string>

#include "mpi/mpi_ranks.hpp"

namespace {

std::string text(int from, int to, int number) {
  std::string bytes(static_cast<std::size_t>(number * 13 % 101), 'a');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>('a' + (i * 7 + static_cast<std::size_t>(from * 5 + to)) % 26);
  }
  return bytes;
}

// How many messages are not what was sent.
int wrong_messages(lnorm::Ranks& ranks) {
  int wrong = 0;
  for (int number = 0; number < 50; ++number) {
    for (int other = 0; other < ranks.count(); ++other) {
      if (other != ranks.rank()) ranks.send(other, text(ranks.rank(), other, number));
    }
  }
  for (int number = 0; number < 50; ++number) {
    for (int other = 0; other < ranks.count(); ++other) {
      if (other == ranks.rank()) continue;
      if (ranks.receive(other) != text(other, ranks.rank(), number)) ++wrong;
    }
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
  int wrong = 0;
  {
    lnorm::app::MpiRanks ranks(7);
    wrong = wrong_messages(ranks);
    ranks.end({});
  }
  MPI_Finalize();
  if (wrong > 0) std::printf("%d messages are wrong\n", wrong);
  return wrong > 0 ? 1 : 0;
}
