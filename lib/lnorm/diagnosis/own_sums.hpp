#pragma once

#include <span>

#include "lnorm/diagnosis/variant.hpp"

// Kernels whose own sums lose more than the arithmetic explains. The order of the additions decides what they write, so
// nobody can compute that from x: the output tells the mean and the s that each row must have had.
namespace lnorm {

// y by the statistics that the row's output tells, with the bound that is left for each element; where the sums of the
// variant cannot have lost so much, by the exact ones. Of a row without an output: what pairwise sums give, without a bound.
void fill_by_own_sums(const Variant& variant, const JudgeSetting& setting, const SampleRow& row,
                      VariantRow& result);

// Whether the rows' statistics speak for the variant, not only leave it possible: sums in a dtype are numbers of it, and
// one pass loses at least a twentieth of what it may lose somewhere.
bool is_evident(const Variant& variant, const Sample& sample);

}  // namespace lnorm
