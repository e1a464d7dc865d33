#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace lnorm {

// Objects that threads lend each other: there are as many as were in use at once.
template <class T>
class Pool {
 public:
  // Returns one that is not in use, or what make returns if there is none.
  template <class Make>
  std::unique_ptr<T> take(Make make) {
    if (const std::lock_guard lock(mutex_); !idle_.empty()) {
      auto object = std::move(idle_.back());
      idle_.pop_back();
      return object;
    }
    return make();
  }

  void give(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(object));
  }

  // Those that are not in use: all, once threads have ended.
  const std::vector<std::unique_ptr<T>>& idle() const noexcept { return idle_; }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace lnorm
