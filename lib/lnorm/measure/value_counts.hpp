#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lnorm {

// How many of many numbers have which value. Up to kMax values are counted one by one. Of more, numbers
// that agree in sign, exponent and leading bits are counted together: in as many leading bits, 1 or more, as
// kBins bins allow, which are few so that the cache holds them. So the counts depend on the numbers alone,
// and not on their order. Memory is fixed (2 MiB, less for few values).
class ValueCounts {
 public:
  static constexpr std::size_t kMax = 65536;
  static constexpr std::size_t kBins = 8192;

  ValueCounts();

  // Finite numbers. Zeros of both signs are the same.
  void add(std::span<const double> values);
  // Adds floats, in native byte order at any address.
  void add_floats(std::span<const std::byte> values);

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

  // core/serialize.hpp calls it.
  template <class Archive>
  void serialize(Archive& archive) {
    std::vector<Slot> counts;
    if constexpr (!Archive::kTakes) counts = all();
    archive(counts, shift_);
    if constexpr (Archive::kTakes) take(counts, slots_for(counts.size()));
  }

  // Whether every bin is one value.
  bool exact() const noexcept { return shift_ == 0; }

 private:
  // The key of a number is its bits without those at the end that are not looked at.
  struct Slot {
    std::uint64_t key = 0;
    std::int64_t count = 0;  // 0: free
  };

  // Once numbers are counted together, most of them find their place in a window without a search: it has a place
  // for every key from low on, first those of positive numbers, then those of negative ones. A key's sign aside.
  static constexpr std::size_t kWindow = kBins;
  struct Window {
    std::uint64_t low = 0;
    std::vector<std::uint32_t> counts;  // empty where there is no window; small, for the cache
    std::size_t room = 0;               // how many numbers may be added until one could overflow
  };

  template <class T>
  void add_all(std::span<const std::byte> values);
  template <class T>
  std::size_t add_in_window(std::span<const std::byte> values);
  std::size_t place_of(std::uint64_t key) const;
  void count(std::uint64_t key, std::int64_t count);
  std::size_t most_used() const { return exact() ? slots_.size() / 2 : kBins; }
  void grow();
  void take(const std::vector<Slot>& all, std::size_t slots);
  std::size_t slots_for(std::size_t keys) const;
  void open_window();
  std::vector<Slot> all() const;

  std::vector<Slot> slots_;  // a power of two
  std::size_t used_ = 0;
  int hash_shift_ = 0;
  int shift_ = 0;  // how many bits of a number's end are not looked at
  Window window_;
};

}  // namespace lnorm
