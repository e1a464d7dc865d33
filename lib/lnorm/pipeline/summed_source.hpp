#pragma once

#include <memory>
#include <optional>

#include "lnorm/io/tensor_source.hpp"

// x + residual, element by element, as a tensor that is read like any other.
namespace lnorm {

// What the sum of two tensors is, under the name of x. Its dtype is rounded_to, to which each element is rounded once; or
// one that holds every sum exactly. It lies in memory as both do, or else in C order. Throws Error if the shapes
// differ, or if no dtype holds the sums.
TensorInfo sum_info(const TensorInfo& x, const TensorInfo& residual,
                    std::optional<DType> rounded_to);

// How a sum is rounded: at once, or to float32 first, as by kernels that add in float32. Near a tie the two may differ.
enum class SumRounding { once, by_float32 };

// Whether the two may differ for such tensors; wider arithmetic is not looked at.
bool may_round_twice(DType x, DType residual, DType rounded_to) noexcept;

// The sum, as sum_info has it: with random access if both have them. What is not in its order is brought there,
// perhaps by way of a temporary file, by so many threads. Throws Error.
std::unique_ptr<TensorSource> summed(std::unique_ptr<TensorSource> x,
                                     std::unique_ptr<TensorSource> residual,
                                     std::optional<DType> rounded_to, int threads,
                                     SumRounding rounding = SumRounding::once);

}  // namespace lnorm
