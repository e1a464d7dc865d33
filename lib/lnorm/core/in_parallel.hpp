#pragma once

#include <cstdint>
#include <functional>

namespace lnorm {

// Calls work(part) for every number below parts, several at once. Whoever owns the threads provides it.
using InParallel =
    std::function<void(std::int64_t parts, const std::function<void(std::int64_t part)>& work)>;

// The caller alone does the work.
inline void one_by_one(std::int64_t parts, const std::function<void(std::int64_t part)>& work) {
  for (std::int64_t part = 0; part < parts; ++part) work(part);
}

}  // namespace lnorm
