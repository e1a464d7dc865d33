#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lnorm/diagnosis/diagnosis.hpp"

// Which wrong backward pass gives the gradients, if any does.
namespace lnorm {

// Rows of the table together, and what they make of the rows that are looked at; of dweight and dbias there is one.
struct GradientTrial {
  std::vector<const NamedKernel*> kernels;
  GradientVariant variant;
  std::vector<RowBounds> rows = {};
};

struct GradientDiagnosis {
  Diagnosis diagnosis;
  GradientVariant best;  // of the first explanation
};

// What there is of a gradient: numbers of rows, and what the formula asked for makes of them. fill: fills the rows of
// trials.
struct GradientSample {
  std::vector<std::vector<double>> actual;
  std::vector<RowBounds> exact;
  std::function<void(std::vector<GradientTrial>& trials)> fill;
};

GradientDiagnosis diagnose(const GradientSample& sample, const GradientContext& context,
                           const ChooseKernel& choose);

}  // namespace lnorm
