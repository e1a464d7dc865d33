#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lnorm/core/shape.hpp"
#include "lnorm/diagnosis/row_formula.hpp"

// What sums lose that are added one after another, measured on the numbers themselves: each of several orders is run in the kernel's
// arithmetic. From the first to the last, from the last to the first, two halves, 2 to 256 lanes joined by pairs, blocks, each axis first,
// Welford's updates; and in the order of the file, where the row has another.
namespace lnorm {

// The extents of the normalized axes in the order of the row, and which axes these are: the file may have another order.
struct SummedShape {
  Shape extents;
  Axes axes = {};  // empty: those of the file
  // The numbers of the row's elements as they lie in the file; empty if they do so in the row.
  std::vector<std::size_t> file_order() const;
};

// A row, and its statistics in float64.
struct MeasuredRow {
  std::span<const double> x;
  RowStatistics exact;
};

// Of each row, all of one length.
// is_one_pass: of a variance that is mean(x^2) - mean^2.
std::vector<SumLosses> losses_of(std::span<const MeasuredRow> rows, const Formula& formula,
                                 const Arithmetic& arithmetic, const SummedShape& shape,
                                 bool is_one_pass = false);
inline SumLosses losses_of(const MeasuredRow& row, const Formula& formula,
                           const Arithmetic& arithmetic, const SummedShape& shape,
                           bool is_one_pass = false) {
  return losses_of(std::span(&row, 1), formula, arithmetic, shape, is_one_pass).front();
}

// The most that an order loses of the sum of each list of terms, all of one length, in parts of the sum of their magnitudes. Terms are
// rounded to the arithmetic first. is_atomic: the terms may be added in any order: four scrambled ones are run as well.
std::vector<double> losses_of_sums(std::span<const std::span<const double>> terms,
                                   const Arithmetic& arithmetic, const SummedShape& shape,
                                   bool is_atomic = false);

// mean and variance as each order gives them: what a right kernel may have computed.
struct OrderStatistics {
  double mean;
  double variance;
};
std::vector<OrderStatistics> statistics_by_orders(std::span<const double> x, const Formula& formula,
                                                  const Arithmetic& arithmetic,
                                                  const SummedShape& shape);

}  // namespace lnorm
