#pragma once

#include <atomic>

namespace lnorm {

// What every loop calls before a block's work, on the thread that does it; what it throws ends the loop. Null: nothing.
inline std::atomic<void (*)()> check_interrupted = nullptr;
inline void check_interruption() {
  if (const auto check = check_interrupted.load(std::memory_order_relaxed)) check();
}

}  // namespace lnorm
