#include "support/ranks.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

class Exchange {
 public:
  explicit Exchange(int count) : count_(count), queues_(static_cast<std::size_t>(count * count)) {}

  int count() const noexcept { return count_; }

  void put(int from, int to, std::string bytes) {
    const std::lock_guard lock(mutex_);
    queue(from, to).push_back(std::move(bytes));
    changed_.notify_all();
  }

  std::string take(int from, int to) {
    std::unique_lock lock(mutex_);
    std::deque<std::string>& bytes = queue(from, to);
    changed_.wait(lock, [&] { return has_failed_ || !bytes.empty(); });
    if (has_failed_) throw lnorm::RankFailure();
    std::string first = std::move(bytes.front());
    bytes.pop_front();
    return first;
  }

  void fail() {
    const std::lock_guard lock(mutex_);
    has_failed_ = true;
    changed_.notify_all();
  }

  void check() {
    const std::lock_guard lock(mutex_);
    if (has_failed_) throw lnorm::RankFailure();
  }

  bool has_unread() const {
    return std::any_of(queues_.begin(), queues_.end(),
                       [](const auto& queue) { return !queue.empty(); });
  }

 private:
  std::deque<std::string>& queue(int from, int to) {
    return queues_[static_cast<std::size_t>(from * count_ + to)];
  }

  int count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<std::string>> queues_;  // by who sends, and to whom
  bool has_failed_ = false;
};

class ThreadRanks final : public lnorm::Ranks {
 public:
  ThreadRanks(Exchange& exchange, int rank) : exchange_(exchange), rank_(rank) {}

  int count() const noexcept override { return exchange_.count(); }
  int rank() const noexcept override { return rank_; }
  void send(int to, std::string bytes) override { exchange_.put(rank_, to, std::move(bytes)); }
  std::string receive(int from) override { return exchange_.take(from, rank_); }
  void check() override { exchange_.check(); }

 private:
  Exchange& exchange_;
  int rank_;
};

}  // namespace

void on_ranks(int count, const std::function<void(lnorm::Ranks& ranks)>& work) {
  Exchange exchange(count);
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  threads.reserve(failures.size());
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadRanks ranks(exchange, rank);
        work(ranks);
      } catch (const lnorm::RankFailure&) {
        exchange.fail();
      } catch (...) {
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
        exchange.fail();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  if (exchange.has_unread()) throw std::logic_error("a rank was sent what it did not ask for");
}
