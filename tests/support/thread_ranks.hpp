#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lnorm/pipeline/ranks.hpp"

namespace support {

// What threads of this process, as ranks, send each other.
struct RankMail {
  std::mutex mutex;
  std::condition_variable news;
  std::map<std::pair<int, int>, std::deque<std::string>> sent;  // from, to
  std::exception_ptr failure;                                   // the first one
};

class ThreadRanks final : public lnorm::Ranks {
 public:
  ThreadRanks(int count, int rank, RankMail& mail) : count_(count), rank_(rank), mail_(mail) {}

  int count() const noexcept override { return count_; }
  int rank() const noexcept override { return rank_; }

  void send(int to, std::string bytes) override {
    const std::lock_guard lock(mail_.mutex);
    mail_.sent[{rank_, to}].push_back(std::move(bytes));
    mail_.news.notify_all();
  }

  std::string receive(int from) override {
    std::unique_lock lock(mail_.mutex);
    auto& queue = mail_.sent[{from, rank_}];
    mail_.news.wait(lock, [&] { return mail_.failure || !queue.empty(); });
    if (queue.empty()) throw lnorm::RankFailure();
    std::string bytes = std::move(queue.front());
    queue.pop_front();
    return bytes;
  }

  void check() override {
    const std::lock_guard lock(mail_.mutex);
    if (mail_.failure) throw lnorm::RankFailure();
  }

 private:
  int count_;
  int rank_;
  RankMail& mail_;
};

// Calls work(ranks) on so many ranks. Throws the first failure; returns whether all that was sent has been received.
template <class Work>
bool on_ranks(int count, const Work& work) {
  RankMail mail;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadRanks ranks(count, rank, mail);
      try {
        work(ranks);
      } catch (...) {
        const std::lock_guard lock(mail.mutex);
        if (!mail.failure) mail.failure = std::current_exception();
        mail.news.notify_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (mail.failure) std::rethrow_exception(mail.failure);
  for (const auto& [way, queue] : mail.sent) {
    if (!queue.empty()) return false;
  }
  return true;
}

}  // namespace support
