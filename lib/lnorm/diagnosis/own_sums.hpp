#pragma once

#include "lnorm/diagnosis/variant.hpp"

// Kernels whose own sums lose more than the arithmetic explains. The order of the additions decides what they write, which
// x alone does not tell. The output does: it gives the mean and the s that each row must have had.
namespace lnorm {

// How a variant computes a row, and whether what it may be off by has a bound.
struct VariantLine {
  RowLine line;
  bool is_bounded = false;
};

// By the mean and the s that the row's output tells, and what is left for each element; by the exact ones, where the sums of
// the variant cannot have lost so much. Of a row without an output: by pairwise sums, without a bound.
VariantLine line_by_own_sums(const Variant& variant, const JudgeSetting& setting,
                             const SampleRow& row);

// Whether the rows' statistics speak for the variant, not only leave it possible: sums in a dtype are numbers of it, and
// one pass loses at least a twentieth of what it may lose somewhere.
bool is_evident(const Variant& variant, const Sample& sample);

}  // namespace lnorm
