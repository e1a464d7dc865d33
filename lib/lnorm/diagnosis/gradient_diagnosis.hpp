#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lnorm/diagnosis/diagnosis.hpp"

// Which wrong backward pass gives the gradients, if any does.
namespace lnorm {

// What there is of a gradient: numbers of rows, and what variants make of a row, of so many at once at most; of dweight and dbias there
// is one row.
struct GradientSample {
  std::vector<std::vector<double>> actual;
  std::function<std::vector<RowBounds>(std::span<const Variant> variants, std::size_t row)>
      evaluate;
  std::size_t at_once = 1;
};

Diagnosis diagnose(const GradientSample& sample, const GradientModel& model,
                   const KernelContext& context, const ChooseKernel& choose);

}  // namespace lnorm
