#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lnorm {

// Things in order, in parts of neighbors. The sizes of parts differ by one at most.
struct Partition {
  std::int64_t all = 0;
  std::int64_t parts = 0;  // none is empty; fewer than 2^31

  Partition() = default;
  Partition(std::int64_t things, std::int64_t most_parts)
      : all(things), parts(std::min(things, most_parts)) {}

  // Whether a part may have several things.
  bool is_coarse() const noexcept { return parts < all; }

  // The first thing of a part; of the part after the last one, all.
  std::int64_t begin(std::int64_t part) const noexcept {
    return part * (all / parts) + part * (all % parts) / parts;
  }
  std::int64_t size(std::int64_t part) const noexcept { return begin(part + 1) - begin(part); }
  std::int64_t greatest_size() const noexcept { return (all + parts - 1) / parts; }

  // begin of every part, and all.
  std::vector<std::int64_t> begins() const {
    std::vector<std::int64_t> result(static_cast<std::size_t>(parts) + 1, 0);
    for (std::int64_t part = 1; part <= parts; ++part) {
      result[static_cast<std::size_t>(part)] = begin(part);
    }
    return result;
  }

  // The part that a thing is in.
  std::int64_t of(std::int64_t thing) const noexcept {
    std::int64_t part = std::min(thing / (all / parts), parts - 1);  // or one before
    while (begin(part) > thing) --part;
    return part;
  }
};

}  // namespace lnorm
