#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lnorm/diagnosis/diagnosis.hpp"

// Which wrong backward pass gives the gradients, if any does.
namespace lnorm {

// The numbers of a gradient that are looked at, in parts: rows of dx; or of dweight or dbias some parameters, then all others. evaluate
// gives what variants make of a part, at_once of them at most.
struct GradientSample {
  std::vector<std::vector<double>> actual;
  std::function<std::vector<RowBounds>(std::span<const Variant> variants, std::size_t row)>
      evaluate;
  std::size_t at_once = 1;
  double least_share = 0.5;  // a variant that explains less of what is looked at first is given up
};

Diagnosis diagnose(const GradientSample& sample, const KernelContext& context,
                   const ChooseKernel& choose);

}  // namespace lnorm
