#pragma once

#include <span>
#include <vector>

#include "lnorm/diagnosis/variant.hpp"

// The gradients of a variant (kernel/backward.hpp), in float64, and how far off a kernel may be that computes it: the bounds of
// docs/numbers.md, "The bounds of gradients".
namespace lnorm {

inline constexpr double kNoise = 16;
inline constexpr double kNoiseTimes = 4;  // noise is of its size within this factor

// The bound of a column has its loss so many times, since kernels add its terms in any order.
inline constexpr double kColumnLossFactor = 6;

// What the sums of dx lose in rows of one length, by the formula asked for.
std::vector<SumLosses> losses_of_dx(const KernelContext& context, std::span<const SampleRow> rows);

// dx of the row.
RowBounds evaluate_dx(const Variant& variant, const KernelContext& context, const SampleRow& row);

// xhat of the row.
std::vector<double> xhat_of(const Variant& variant, const KernelContext& context,
                            const SampleRow& row);

// dweight or dbias, as the context says. Rows whose elements are not finite make their columns NaN.
class ParameterSums {
 public:
  // wanted: the parameters whose sums are wanted, by their number in the layout; empty: all.
  ParameterSums(const Variant& variant, const KernelContext& context,
                std::vector<char> wanted = {});

  // The next row.
  void add(const SampleRow& as_given);
  // What was found of the rows that follow. Not where sums are rounded.
  void append(const ParameterSums& next);
  // losses: what the sums lose beside the tree bound, in parts of the sums of magnitudes; of each parameter in the layout's order, of all
  // of them, or none.
  // Where sums are noise, bounds are kNoise times what they are off by as a rule; 0 where the loss of a term would be as large.
  RowBounds finish(std::span<const double> losses = {}) const;

 private:
  void add_term(std::size_t i, double term, double error);
  void add_rounding(std::size_t i, double term);
  void join_partials();

  Variant variant_;
  const KernelContext& context_;
  Quantity of_;
  std::vector<char> wanted_;
  OutputFormat format_;  // of sums that are rounded
  std::vector<std::size_t>
      elements_;  // of a row that have such a parameter, if all rows have the same
  bool is_bounded_ = true;
  bool is_in_range_ = true;
  std::vector<double> sums_;
  std::vector<double> counts_;  // of the terms
  std::vector<double> sizes_;   // sums of their magnitudes
  std::vector<double>
      errors_;  // sums of what the terms are off by; where sums are rounded, what the sum is off by
  std::vector<double> noise_;   // where sums are noise: mean squares of what they are off by
  std::vector<double> joined_;  // the sums of partial sums, where they are written
};

}  // namespace lnorm
