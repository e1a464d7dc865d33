#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lnorm/core/axes.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/measure/comparison.hpp"
#include "lnorm/pipeline/crew.hpp"

namespace lnorm {

// What goes through at once: so many elements of each tensor.
inline constexpr std::int64_t kComparedElements = 32768;

Crew crew_of_comparison(const TensorInfo& actual, int threads);

// Walks both tensors together in C order, in fixed memory, their blocks on several threads. Keeps the first
// max_mismatches pairs that differ. Tensors of different shapes are not read. row_axes: along which rows go,
// if the rows with mismatches are to be counted, which takes a bit a row. Throws Error.
Comparison compare(TensorSource& actual, TensorSource& expected, const Tolerance& tolerance,
                   std::size_t max_mismatches, const RunOptions& options = {},
                   const std::optional<Axes>& row_axes = {});

}  // namespace lnorm
