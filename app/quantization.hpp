#pragma once

#include "arguments.hpp"
#include "companions.hpp"
#include "lnorm/kernel/quantize.hpp"

// What the options of quantization say, for the commands that have them.
namespace lnorm::app {

bool is_quantized_dtype(DType dtype);

// Throws Error for options that contradict each other.
void check_quantization(const Arguments& arguments);

// What the rows of a plan need.
RowNeeds quantized_rows(const QuantizationArguments& arguments);
// The same where they go past observers, whether they are quantized or not.
RowNeeds observed_rows(const QuantizationArguments& arguments);

// How a plan's results are quantized.
Quantization quantization_of(const QuantizationArguments& arguments, const Plan& plan);

}  // namespace lnorm::app
