#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lnorm {

// Calls its argument with (column, value) for every value of every column; may be called again.
using EachValue = std::function<void(const std::function<void(std::size_t, double)>&)>;

// The median of every column, whose number of values is given; of an even number, the mean of the
// two in the middle; of none, NaN. No value is NaN. Exact: at most kHeldValues, in all, are held and
// sorted as far as need be; more of them take several passes, in memory that does not grow.
inline constexpr std::int64_t kHeldValues = 1'000'000;
std::vector<double> medians(std::span<const std::int64_t> counts, const EachValue& each_value,
                            std::int64_t most_held = kHeldValues);

}  // namespace lnorm
