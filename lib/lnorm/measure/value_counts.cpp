#include "lnorm/measure/value_counts.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace lnorm {

namespace {

constexpr std::size_t kFewSlots = 1024;
constexpr std::size_t kMostSlots = 2 * ValueCounts::kMost;
constexpr std::size_t kSlotsOfBins = 4 * ValueCounts::kBins;
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;

}  // namespace

ValueCounts::ValueCounts() { move_to(kFewSlots, 0); }

// Of the slot that has the key, or else of the free one where it belongs.
std::size_t ValueCounts::place_of(std::uint64_t key) const {
  constexpr std::uint64_t kGolden = 0x9e37'79b9'7f4a'7c15;  // [Knuth, multiplicative hashing]
  const Slot* const slots = slots_.data();
  const std::size_t mask = slots_.size() - 1;
  std::size_t place = (key * kGolden) >> hash_shift_;
  while (slots[place].count > 0 && slots[place].key != key) place = (place + 1) & mask;
  return place;
}

inline void ValueCounts::count(std::uint64_t key, std::int64_t count) {
  Slot& slot = slots_[place_of(key)];
  const bool is_new = slot.count == 0;
  slot.count += count;
  if (!is_new) return;
  slot.key = key;
  if (++used_ > most_used()) make_room();
}

void ValueCounts::add(std::span<const double> values) {
  for (const double value : values) {
    const std::uint64_t key = std::bit_cast<std::uint64_t>(value + 0.0) >> shift_;
    count(key, 1);
  }
}

void ValueCounts::merge(const ValueCounts& other) {
  if (other.shift_ > shift_) {
    move_to(std::max(slots_.size(), kSlotsOfBins), other.shift_ - shift_);
    if (used_ > most_used()) make_room();
  }
  for (const Slot& slot : other.slots_) {
    if (slot.count > 0) count(slot.key << other.shift_ >> shift_, slot.count);
  }
}

// Moves all counts to so many new slots, by keys without that many bits at their end.
void ValueCounts::move_to(std::size_t slots, int dropped) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots));
  hash_shift_ = 64 - std::countr_zero(slots);
  shift_ += dropped;
  used_ = 0;
  for (const Slot& from : old) {
    if (from.count == 0) continue;
    const std::uint64_t key = from.key >> dropped;
    Slot& to = slots_[place_of(key)];
    if (to.count == 0) ++used_;
    to.key = key;
    to.count += from.count;
  }
}

void ValueCounts::make_room() {
  if (exact() && slots_.size() < kMostSlots) return move_to(2 * slots_.size(), 0);
  while (used_ > kBins) {
    std::uint64_t bits = 0;
    for (const Slot& slot : slots_) bits |= slot.key;
    move_to(slots_.size(), std::countr_zero(bits) + 1);  // zeros at all ends tell nothing apart
  }
  if (slots_.size() > kSlotsOfBins) move_to(kSlotsOfBins, 0);
}

std::vector<ValueCounts::Bin> ValueCounts::bins() const {
  std::vector<Bin> result;
  const std::uint64_t rest = (std::uint64_t{1} << shift_) - 1;
  for (const Slot& slot : slots_) {
    if (slot.count == 0) continue;
    const std::uint64_t nearest = slot.key << shift_;  // to zero
    const auto near = std::bit_cast<double>(nearest);
    const auto far = std::bit_cast<double>(nearest | rest);
    const bool negative = (nearest & kSign) != 0;
    result.push_back({negative ? far : near, negative ? near : far, slot.count});
  }
  std::sort(result.begin(), result.end(), [](const Bin& a, const Bin& b) { return a.low < b.low; });
  return result;
}

}  // namespace lnorm
