#pragma once

#include <mpi.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/pipeline/ranks.hpp"
#include "program.hpp"

namespace lnorm::app {

// The ranks of an MPI job. Who waits for a message asks for it again and again, and sleeps between, so that its processor
// is there for the others.
class MpiRanks final : public Ranks {
 public:
  // Between MPI_Init_thread, for calls by one thread at a time, and MPI_Finalize. most_bytes: of a message; more go as several.
  explicit MpiRanks(std::size_t most_bytes = std::size_t{1} << 30);

  int count() const noexcept override { return count_; }
  int rank() const noexcept override { return rank_; }
  void send(int to, std::string bytes) override;
  std::string receive(int from) override;
  void check() override;

  // The end of this rank. Waits for those of the others. Returns, on rank 0, how the job has ended: with an error if a
  // rank has one, which is named unless all have the same; the others have nothing more to say. No message is under way then.
  Ending end(const Ending& own);

 private:
  enum Tag { kData, kEnd };

  struct Sent {
    MPI_Request request;
    std::string bytes;
  };

  void start_sending(int to, Tag tag, std::string bytes);
  std::optional<std::string> take_message(int from, Tag tag);
  std::string wait_for_message(int from);
  void take_ends();

  std::size_t most_bytes_;
  int count_ = 1;
  int rank_ = 0;
  std::deque<Sent> sent_;
  std::vector<std::optional<Ending>> ends_;  // of the ranks that have ended
  std::vector<std::string> hosts_;           // and where they were
};

}  // namespace lnorm::app
