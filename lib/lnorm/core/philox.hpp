#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace lnorm {

// Philox4x32-10, a generator that counts: each number is a function of its index alone, the same on every machine.
// [Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"]
class Philox {
 public:
  using Block = std::array<std::uint32_t, 4>;

  // Streams of one seed have nothing to do with each other.
  Philox(std::uint64_t seed, std::uint32_t stream, std::uint32_t attempt = 0) noexcept
      : seed_(seed), stream_(stream), attempt_(attempt) {}

  static Block block_of(Block counter, std::uint32_t key0, std::uint32_t key1) noexcept {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
      counter = {
          static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
      key0 += 0x9E3779B9;
      key1 += 0xBB67AE85;
    }
    return counter;
  }

  Block block(std::uint64_t index) const noexcept {
    return block_of({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                     stream_, attempt_},
                    static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32));
  }

  // Below bound, which is small beside 2^32.
  std::int64_t integer(std::uint64_t index, std::uint32_t bound) const noexcept {
    return static_cast<std::int64_t>(std::uint64_t{block(index)[0]} * bound >> 32);
  }

  // From 0 to 1, in 32 bits.
  double uniform(std::uint64_t index) const noexcept { return std::ldexp(block(index)[0], -32); }

  // About normal, with mean 0 and deviation 1: the sum of twelve uniform numbers of 16 bits. Exact, without a function
  // that machines compute differently.
  double normal(std::uint64_t index) const noexcept {
    std::int64_t sum = -6 * std::int64_t{65535};
    const Block first = block(2 * index);
    const Block second = block(2 * index + 1);
    for (const std::uint32_t word : first) sum += (word >> 16) + (word & 0xffff);
    sum += (second[0] >> 16) + (second[0] & 0xffff) + (second[1] >> 16) + (second[1] & 0xffff);
    return std::ldexp(static_cast<double>(sum), -16);
  }

 private:
  std::uint64_t seed_;
  std::uint32_t stream_;
  std::uint32_t attempt_;
};

}  // namespace lnorm
