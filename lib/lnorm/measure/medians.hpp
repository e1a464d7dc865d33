#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lnorm {

// Takes some values of a column.
using SeeValues = std::function<void(std::size_t column, std::span<const double> values)>;

// Calls see for the values of every column; may be called again. With a step above 1 one value in so many will do, about
// evenly spread.
using EachValue = std::function<void(std::int64_t step, const SeeValues& see)>;

// The median of every column, whose number of values is given; of an even number, the mean of the
// two in the middle; of none, NaN. No value is NaN. Exact, while at most most_held values, in all, are held: a sample
// tells between which values the median will lie, and these are sorted. Where there are too many of them, or a sample
// misleads, digits are counted in several passes.
//
// add_up: where others have the rest of the values. It adds up the counts of all of them, who call medians with the same
// counts of values and get the same medians. Then digits are counted.
using AddUp = std::function<void(std::span<std::int64_t> counts)>;
inline constexpr std::int64_t kHeldValues = 1'000'000;
std::vector<double> medians(std::span<const std::int64_t> counts, const EachValue& each_value,
                            std::int64_t most_held = kHeldValues, const AddUp& add_up = {});

}  // namespace lnorm
