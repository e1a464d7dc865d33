#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/serialize.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/layout/tiles.hpp"

namespace lnorm {

// Another rank has failed, or has ended. It says itself what happened.
class RankFailure : public std::exception {
 public:
  const char* what() const noexcept override { return "another rank has failed"; }
};

// The processes that do a job together, numbered from 0. All of them run the same commands on the same files, so that
// they come to the same places in the same order; what is sent and received there fits together. Each does a part of
// the elements.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  virtual int count() const noexcept = 0;
  virtual int rank() const noexcept = 0;
  bool is_first() const noexcept { return rank() == 0; }

  // Bytes to another rank. Does not wait for it.
  virtual void send(int to, std::string bytes) = 0;

  // The next bytes from another rank, in the order in which they were sent. Throws RankFailure.
  virtual std::string receive(int from) = 0;

  // Loops call it between blocks. Throws RankFailure.
  virtual void check() = 0;
};

// The process that is alone.
class SoleRank : public Ranks {
 public:
  int count() const noexcept override { return 1; }
  int rank() const noexcept override { return 0; }
  void send(int, std::string) override {}
  std::string receive(int) override { return {}; }
  void check() override {}
};
Ranks& sole_rank();

// One of several processes, in what it does by itself. It still hears of the failure of others.
class LoneRank final : public SoleRank {
 public:
  explicit LoneRank(Ranks& all) : all_(all) {}
  void check() override { all_.check(); }

 private:
  Ranks& all_;
};

// The bytes of rank 0, on every rank.
std::string broadcast_bytes(Ranks& ranks, std::string bytes);

// The value of rank 0, on every rank.
template <class T>
void broadcast(Ranks& ranks, T& value) {
  if (ranks.count() == 1) return;
  const std::string bytes =
      broadcast_bytes(ranks, ranks.is_first() ? serialize(value) : std::string());
  if (!ranks.is_first()) deserialize(bytes, value);
}

// Brings what ranks have found together in rank 0: packed() is what this one has, and append(bytes) adds what the ranks
// after it have, in their order. After that what the other ranks have is not whole.
void reduce(Ranks& ranks, const std::function<std::string()>& packed,
            const std::function<void(const std::string&)>& append);

// The same of a value: append(next) adds what the ranks after this one have.
template <class T, class Append>
void reduce_value(Ranks& ranks, T& value, Append append) {
  reduce(
      ranks, [&] { return serialize(value); },
      [&](const std::string& bytes) {
        T next;
        deserialize(bytes, next);
        append(next);
      });
}

// Then all ranks have it.
template <class T, class Append>
void all_reduce_value(Ranks& ranks, T& value, Append append) {
  reduce_value(ranks, value, append);
  broadcast(ranks, value);
}

// The items of all ranks in rank 0, in the order of ranks.
template <class T>
void gather(Ranks& ranks, std::vector<T>& items) {
  reduce_value(ranks, items, [&](std::vector<T>& next) {
    items.insert(items.end(), std::make_move_iterator(next.begin()),
                 std::make_move_iterator(next.end()));
  });
}

// Reduces, and then gives the result to all ranks: replace(bytes) takes what packed() is in rank 0.
void all_reduce(Ranks& ranks, const std::function<std::string()>& packed,
                const std::function<void(const std::string&)>& append,
                const std::function<void(const std::string&)>& replace);

// Numbers added up over all ranks, on every rank.
void add_up(Ranks& ranks, std::span<std::int64_t> numbers);

// Whether something is so on every rank.
bool all_of(Ranks& ranks, bool is_so);

// Waits until all ranks are here. Throws RankFailure.
void barrier(Ranks& ranks);

// The blocks of a loop that a rank does.
struct BlockRange {
  std::int64_t begin;
  std::int64_t end;

  std::int64_t size() const noexcept { return end - begin; }
};

// The ranges of ranks follow each other.
BlockRange block_range_of(std::int64_t blocks, const Ranks& ranks);

// Who takes part in a loop: all ranks, if each of them can take a part; otherwise rank 0 alone.
class Participants {
 public:
  Participants(Ranks& all, bool can_distribute);

  // Those that this rank does it with; null if it has no part.
  Ranks* ranks() noexcept { return ranks_; }

 private:
  LoneRank alone_;
  Ranks* ranks_ = nullptr;
};

// Whether ranks can read or write parts of a tensor.
inline bool can_distribute(const TensorSource& source, const IoPath& io_path) {
  return source.has_random_access() && !io_path.uses_temporary_file(true);
}
inline bool can_distribute(const TensorSink& sink, const IoPath& io_path) {
  return sink.has_random_access() && !sink.needs_prescan() && !io_path.uses_temporary_file(true);
}

// Throws Error if things are not what they are on rank 0. name: of what has them. things: of them, for the message.
void check_same(Ranks& ranks, const std::string& name, std::vector<std::string> found,
                std::string_view things);

// Whether all ranks see the same tensor: dtype, shape and order.
void check_same(Ranks& ranks, const TensorInfo& tensor);
std::string identity(const TensorInfo& tensor);

enum class Deal {
  together,  // all ranks do every tensor together
  by_size,   // all ranks do a large tensor together, one rank does another
};

// Which of several tensors a rank does. All ranks come to the same.
class WorkDistribution {
 public:
  // bytes: of each tensor, in the order in which they are done.
  WorkDistribution(Ranks& ranks, Deal deal, std::span<const std::int64_t> bytes);

  // The ranks that do a tensor, if this one is among them: all of them, or it alone. Otherwise null.
  Ranks* ranks_of(std::size_t tensor) const;

  // A smaller tensor is not large: what ranks have to tell each other takes as long as to read it.
  static constexpr double kMinLarge = 4 << 20;

 private:
  static constexpr int kAll = -1;

  Ranks& all_;
  mutable LoneRank alone_;
  std::vector<int> owners_;  // of tensors: a rank, or all
};

}  // namespace lnorm
