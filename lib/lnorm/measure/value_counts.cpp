#include "lnorm/measure/value_counts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lnorm/core/byte_order.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kFewSlots = 1024;
constexpr std::size_t kMaxSlots = 2 * ValueCounts::kMax;
constexpr std::size_t kTogether = 64;
constexpr std::size_t kSlotsOfBins = 4 * ValueCounts::kBins;
constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
constexpr std::uint64_t kInfinityBits = std::uint64_t{0x7ff} << 52;

// A float's bits are those of a double without the last ones, and with another bias.
constexpr int kMissingBits =
    std::numeric_limits<double>::digits - std::numeric_limits<float>::digits;
constexpr std::uint64_t kFloatMantissa = std::uint64_t{1}
                                         << (std::numeric_limits<float>::digits - 1);
constexpr std::uint64_t kMissingBias = std::uint64_t{1023 - 127} * kFloatMantissa;

template <class T>
T value_at(std::span<const std::byte> values, std::size_t i) {
  T value;
  std::memcpy(&value, values.data() + i * sizeof value, sizeof value);
  return value;
}

// How many bits at the end of all keys are to be dropped so that at most kBins of them differ. At first more do.
template <class Slots>
int bits_to_drop(const Slots& all) {
  std::vector<std::uint64_t> seen(2 * ValueCounts::kBins);  // 0: free; keys are 1 more here
  const auto fits = [&](int dropped) {
    std::fill(seen.begin(), seen.end(), 0);
    std::size_t different = 0;
    for (const auto& slot : all) {
      const std::uint64_t key = (slot.key >> dropped) + 1;
      std::size_t place = (key * 0x9e37'79b9'7f4a'7c15) >> (64 - std::countr_zero(seen.size()));
      while (seen[place] != 0 && seen[place] != key) place = (place + 1) % seen.size();
      if (seen[place] == key) continue;
      if (++different > ValueCounts::kBins) return false;
      seen[place] = key;
    }
    return true;
  };
  std::uint64_t bits = 0;
  for (const auto& slot : all) bits |= slot.key;
  int dropped = std::countr_zero(bits) + 1;  // zeros at all ends tell nothing apart
  for (int enough = 63; dropped < enough;) {
    const int middle = (dropped + enough) / 2;
    fits(middle) ? enough = middle : dropped = middle + 1;
  }
  return dropped;
}

// One is left of neighbors with the same key.
template <class Slots>
void add_up_same(Slots& slots) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < slots.size(); ++i) {
    if (slots[i].key == slots[last].key) {
      slots[last].count += slots[i].count;
    } else {
      slots[++last] = slots[i];
    }
  }
  if (!slots.empty()) slots.resize(last + 1);
}

}  // namespace

ValueCounts::ValueCounts() { take({}, kFewSlots); }

// The index of the slot that has the key, or else of the free one where it belongs.
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
  if (++used_ > most_used()) grow();
}

// Until one has no place there. Returns how many have.
template <class T>
std::size_t ValueCounts::add_in_window(std::span<const std::byte> values) {
  using Bits = UnsignedOfSize<sizeof(T)>;
  constexpr bool kIsFloat = std::is_same_v<T, float>;
  if (window_.counts.empty() || (kIsFloat && shift_ < kMissingBits)) return 0;
  const int dropped = kIsFloat ? shift_ - kMissingBits : shift_;
  const std::uint64_t bias = kIsFloat ? kMissingBias >> dropped : 0;
  // Subnormal floats have other bits as doubles.
  const bool is_normal = !kIsFloat || window_.low >= bias + (kFloatMantissa >> dropped);
  const auto low = static_cast<Bits>(window_.low - bias);
  std::uint32_t* const counts = window_.counts.data();
  const std::size_t size = is_normal ? values.size() / sizeof(T) : 0;
  if (size > window_.room) {  // begins another one, with counts of 0
    take(all(), kSlotsOfBins);
    open_window();
    return 0;
  }
  std::array<Bits, kTogether> places;  // found by vectors, before the counters are touched
  std::size_t done = 0;
  std::size_t found = kTogether;
  for (; found == kTogether && done < size; done += found) {
    const std::size_t n = std::min(kTogether, size - done);
    Bits all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto bits = value_at<Bits>(values, done + i);
      const auto key = static_cast<Bits>((static_cast<Bits>(bits << 1) >> (dropped + 1)) - low);
      places[i] = static_cast<Bits>(key << 1) | (bits >> (8 * sizeof(Bits) - 1));
      all |= places[i];
    }
    const auto outside = [](Bits place) { return place >= 2 * kWindow; };
    found = n;
    if (outside(all)) {
      found = static_cast<std::size_t>(std::find_if(places.begin(), places.end(), outside) -
                                       places.begin());
    }
    for (std::size_t i = 0; i < found; ++i) ++counts[places[i]];
  }
  window_.room -= done;
  return done;
}

template <class T>
void ValueCounts::add_all(std::span<const std::byte> values) {
  while (!values.empty()) {
    values = values.subspan(add_in_window<T>(values) * sizeof(T));
    if (values.empty()) return;
    const auto value = static_cast<double>(value_at<T>(values, 0));
    count(std::bit_cast<std::uint64_t>(value + 0.0) >> shift_, 1);
    values = values.subspan(sizeof(T));
  }
}

void ValueCounts::add(std::span<const double> values) { add_all<double>(std::as_bytes(values)); }

void ValueCounts::add_floats(std::span<const std::byte> values) { add_all<float>(values); }

void ValueCounts::merge(const ValueCounts& other) {
  std::vector<Slot> more = other.all();
  if (other.shift_ > shift_) {
    std::vector<Slot> here = all();
    for (Slot& slot : here) slot.key >>= other.shift_ - shift_;
    shift_ = other.shift_;
    take(here, kSlotsOfBins);
  }
  // They come in the order of their hashes, which would fill a smaller table from its beginning on.
  const std::size_t slots = std::min(slots_for(used_ + more.size()), kMaxSlots);
  if (exact() && slots > slots_.size()) take(all(), slots);
  for (const Slot& slot : more) count(slot.key << other.shift_ >> shift_, slot.count);
}

// Has these counts and no other ones.
void ValueCounts::take(const std::vector<Slot>& all, std::size_t slots) {
  slots_.assign(slots, {});
  hash_shift_ = 64 - std::countr_zero(slots);
  used_ = 0;
  window_.counts.clear();
  for (const Slot& from : all) {
    Slot& to = slots_[place_of(from.key)];
    if (to.count == 0) ++used_;
    to.key = from.key;
    to.count += from.count;
  }
}

// Half of them may be used.
std::size_t ValueCounts::slots_for(std::size_t keys) const {
  if (!exact()) return kSlotsOfBins;
  return std::max(kFewSlots, std::bit_ceil(2 * keys));
}

void ValueCounts::grow() {
  std::vector<Slot> slots = all();
  if (exact() && slots_.size() < kMaxSlots) return take(slots, 2 * slots_.size());
  const int dropped = bits_to_drop(slots);
  for (Slot& slot : slots) slot.key >>= dropped;
  shift_ += dropped;
  take(slots, kSlotsOfBins);
  open_window();
}

// Where most numbers are, with some room for greater ones.
void ValueCounts::open_window() {
  std::vector<Slot> slots = all();
  const std::uint64_t sign = kSign >> shift_;
  std::int64_t left = 0;  // of the greatest numbers: few are far out
  for (Slot& slot : slots) {
    slot.key &= ~sign;
    left += slot.count;
  }
  left /= 1024;
  std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.key > b.key; });
  auto greatest = slots.begin();
  while (left >= greatest->count) left -= (greatest++)->count;
  const std::uint64_t end = std::min(greatest->key + kWindow / 4, kInfinityBits >> shift_);
  window_.low = end > kWindow ? end - kWindow : 1;  // zeros have two signs
  window_.counts.assign(2 * kWindow, 0);
  window_.room = std::numeric_limits<std::uint32_t>::max();
}

// All counts, one a key.
std::vector<ValueCounts::Slot> ValueCounts::all() const {
  std::vector<Slot> all;
  all.reserve(used_);
  for (const Slot& slot : slots_) {
    if (slot.count > 0) all.push_back(slot);
  }
  for (std::size_t i = 0; i < window_.counts.size(); ++i) {
    const std::uint64_t sign = i % 2 == 0 ? 0 : kSign >> shift_;
    if (window_.counts[i] > 0) all.push_back({(window_.low + i / 2) | sign, window_.counts[i]});
  }
  return all;
}

std::vector<ValueCounts::Bin> ValueCounts::bins() const {
  std::vector<Slot> slots = all();
  std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.key < b.key; });
  add_up_same(slots);
  int shift = shift_;
  if (!exact() && slots.size() > kBins) {
    const int dropped = bits_to_drop(slots);
    for (Slot& slot : slots) slot.key >>= dropped;
    shift += dropped;
    add_up_same(slots);
  }
  std::vector<Bin> result;
  result.reserve(slots.size());
  const std::uint64_t rest = (std::uint64_t{1} << shift) - 1;
  for (const Slot& slot : slots) {
    const std::uint64_t nearest = slot.key << shift;  // to zero
    const auto near = std::bit_cast<double>(nearest);
    const auto far = std::bit_cast<double>(nearest | rest);
    const bool negative = (nearest & kSign) != 0;
    result.push_back({negative ? far : near, negative ? near : far, slot.count});
  }
  std::sort(result.begin(), result.end(), [](const Bin& a, const Bin& b) { return a.low < b.low; });
  return result;
}

}  // namespace lnorm
