#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lnorm {

// How many of many numbers have which value. Up to kMost values are counted one by one. Of more, numbers
// that agree in sign, exponent and leading bits are counted together: in as many leading bits, 1 or more, as
// kBins bins allow, which are few so that the cache holds them. So the counts depend on the numbers alone,
// and not on their order. Memory is fixed (2 MiB, less for few values).
class ValueCounts {
 public:
  static constexpr std::size_t kMost = 65536;
  static constexpr std::size_t kBins = 8192;

  ValueCounts();

  // Finite numbers. Zeros of both signs are the same.
  void add(std::span<const double> values);

  // The numbers of both.
  void merge(const ValueCounts& other);

  // Numbers from low to high, both among them.
  struct Bin {
    double low;
    double high;
    std::int64_t count;
  };

  // Those that are not empty, in ascending order.
  std::vector<Bin> bins() const;

  // Whether every bin is one value.
  bool exact() const noexcept { return shift_ == 0; }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::int64_t count = 0;  // 0: free
  };

  std::size_t place_of(std::uint64_t key) const;
  void count(std::uint64_t key, std::int64_t count);
  std::size_t most_used() const { return exact() ? slots_.size() / 2 : kBins; }
  void make_room();
  void move_to(std::size_t slots, int dropped);

  std::vector<Slot> slots_;  // a power of two
  std::size_t used_ = 0;
  int hash_shift_ = 0;
  int shift_ = 0;  // how many bits of a number's end are not looked at
};

}  // namespace lnorm
