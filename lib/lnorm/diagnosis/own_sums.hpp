#pragma once

#include "lnorm/diagnosis/row_estimate.hpp"
#include "lnorm/diagnosis/variant.hpp"

// Kernels whose own sums lose more than the arithmetic explains. The order of the additions decides what they write, which
// x alone does not tell. The output does: it gives the mean and the s that each row must have had.
namespace lnorm {

// What is estimated of a row that should have weight and bias. mean and s: the exact ones.
EstimatedRow estimated(const SampleRow& row, const AffineNumbers& affine, double mean, double s);

// How a variant computes a row, and whether there is a bound for what it may be off by.
struct VariantLine {
  RowLine line;
  bool is_bounded = false;
};

// Takes the mean and the s that the row's output tells. Where the variant's sums cannot have lost so much, takes the exact
// ones. A row without an output gets the statistics of pairwise sums, and no bound.
VariantLine line_by_own_sums(const Variant& variant, const JudgeSetting& setting,
                             const SampleRow& row);

// y of a kernel that rounds each step to a dtype, its sums pairwise.
std::vector<double> computed_in(DType dtype, const Formula& formula, const JudgeSetting& setting,
                                const SampleRow& row);

// Whether the rows' statistics speak for the variant, and do not only leave it possible. One pass: the variance is off by no
// more than four times what it loses, in nine rows of ten. Sums in a dtype are numbers of it; where the rows do not tell that, the
// variance is off by a twentieth of its bound in some row, and is too large in some rows and too small in others. A whole arithmetic:
// the output is off by as much.
bool is_evident(const Variant& variant, const Sample& sample);

}  // namespace lnorm
