#include "mpi_ranks.hpp"

#include <sched.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

// Calls attempt until it returns true.
template <class Attempt>
void wait_until(Attempt attempt) {
  constexpr int kSpins = 200;
  constexpr long kLongest = 200'000;  // nanoseconds
  long pause = 5'000;
  for (int spins = 0; !attempt(); ++spins) {
    if (spins < kSpins) {
      ::sched_yield();
      continue;
    }
    const timespec time{0, pause};
    ::nanosleep(&time, nullptr);
    pause = std::min(2 * pause, kLongest);
  }
}

std::string host() {
  char name[MPI_MAX_PROCESSOR_NAME];
  int size = 0;
  MPI_Get_processor_name(name, &size);
  return {name, static_cast<std::size_t>(size)};
}

bool is_failure(const Ending& ending) { return ending.status == 2; }

}  // namespace

MpiRanks::MpiRanks(std::size_t most_bytes) : most_bytes_(most_bytes) {
  MPI_Comm_size(MPI_COMM_WORLD, &count_);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  ends_.resize(static_cast<std::size_t>(count_));
  hosts_.assign(static_cast<std::size_t>(count_), host());
}

void MpiRanks::start_sending(int to, Tag tag, std::string bytes) {
  while (!sent_.empty()) {
    int is_done = 0;
    MPI_Test(&sent_.front().request, &is_done, MPI_STATUS_IGNORE);
    if (is_done == 0) break;
    sent_.pop_front();
  }
  Sent& sent = sent_.emplace_back(Sent{MPI_REQUEST_NULL, std::move(bytes)});
  MPI_Isend(sent.bytes.data(), static_cast<int>(sent.bytes.size()), MPI_BYTE, to, tag,
            MPI_COMM_WORLD, &sent.request);
  // What waits is MPI_Test.
}  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker)

// The number of bytes, and then these.
void MpiRanks::send(int to, std::string bytes) {
  std::size_t size = bytes.size();
  start_sending(to, kData, serialize(size));
  if (size <= most_bytes_) {
    if (size > 0) start_sending(to, kData, std::move(bytes));
    return;
  }
  for (std::size_t begin = 0; begin < size; begin += most_bytes_) {
    start_sending(to, kData, bytes.substr(begin, most_bytes_));
  }
}

std::optional<std::string> MpiRanks::take_message(int from, Tag tag) {
  int is_there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  MPI_Improbe(from, tag, MPI_COMM_WORLD, &is_there, &message, &status);
  if (is_there == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  MPI_Mrecv(bytes.data(), size, MPI_BYTE, &message, &status);
  if (tag == kEnd) {
    Ending& ending = ends_[static_cast<std::size_t>(status.MPI_SOURCE)].emplace();
    deserialize(bytes, ending.status, ending.message, ending.hint,
                hosts_[static_cast<std::size_t>(status.MPI_SOURCE)]);
  }
  return bytes;
}

void MpiRanks::take_ends() {
  while (take_message(MPI_ANY_SOURCE, kEnd)) {
  }
}

void MpiRanks::check() {
  take_ends();
  const bool has_failed = std::any_of(
      ends_.begin(), ends_.end(), [](const auto& ending) { return ending && is_failure(*ending); });
  if (has_failed) throw RankFailure();
}

std::string MpiRanks::wait_for_message(int from) {
  std::optional<std::string> bytes;
  wait_until([&] {
    check();
    // What a rank sends before its end is there before its end is.
    const bool has_ended = ends_[static_cast<std::size_t>(from)].has_value();
    bytes = take_message(from, kData);
    if (!bytes && has_ended) throw RankFailure();
    return bytes.has_value();
  });
  return *std::move(bytes);
}

std::string MpiRanks::receive(int from) {
  std::size_t size = 0;
  deserialize(wait_for_message(from), size);
  std::string bytes;
  while (bytes.size() < size) {
    std::string part = wait_for_message(from);
    bytes.empty() ? std::swap(bytes, part) : static_cast<void>(bytes += part);
  }
  return bytes;
}

Ending MpiRanks::end(const Ending& own) {
  Ending told = own;
  std::string& here = hosts_[static_cast<std::size_t>(rank_)];
  for (int rank = 0; rank < count_; ++rank) {
    if (rank != rank_) {
      start_sending(rank, kEnd, serialize(told.status, told.message, told.hint, here));
    }
  }
  // Nobody waits for what a rank that has failed was sent.
  const auto drop_data = [&] {
    while (take_message(MPI_ANY_SOURCE, kData)) {
    }
  };
  ends_[static_cast<std::size_t>(rank_)] = own;
  wait_until([&] {
    drop_data();
    take_ends();
    return std::all_of(ends_.begin(), ends_.end(),
                       [](const auto& ending) { return ending.has_value(); });
  });
  wait_until([&] {
    drop_data();
    return std::all_of(sent_.begin(), sent_.end(), [](Sent& sent) {
      int is_done = 0;
      MPI_Test(&sent.request, &is_done, MPI_STATUS_IGNORE);
      return is_done != 0;
    });
  });
  if (rank_ != 0) return {};
  const auto first = std::find_if(ends_.begin(), ends_.end(),
                                  [](const auto& ending) { return !ending->message.empty(); });
  if (first == ends_.end()) return own;
  Ending result = **first;
  const bool is_common = std::all_of(ends_.begin(), ends_.end(), [&](const auto& ending) {
    return ending->message == result.message;
  });
  if (!is_common) {
    const auto rank = first - ends_.begin();
    result.message += concat(" (rank ", rank, " on ", hosts_[static_cast<std::size_t>(rank)], ")");
  }
  return result;
}

}  // namespace lnorm::app
