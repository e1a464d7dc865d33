#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/exact_gradient.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/gradient_statistics.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/row_ladder.hpp"

namespace lnorm {

// Whether the rows of a setting start in doubles.
bool starts_in_doubles(const GradientSetting& setting) noexcept;

// Whether g may be the same for all of a row, so that dx may be 0, as far as its sums tell.
inline bool may_be_constant(double g_sum, double g_squares, std::int64_t n) {
  return g_sum * g_sum >= static_cast<double>(n) * g_squares * (1 - 0x1p-20);
}

// One row on its way through the backward pass, as kernel/backward.hpp defines it:
//
//   RowGradient row(setting, sample_of(its first part of x), saved, read_row);
//   while (row.wants_sums()) row.take(the sum of row.sums(part) over all parts);
//   row.write(part, dx, columns) for all parts
class RowGradient final : public GradientResolver,
                          public RowLadder<RowGradient, GradientSetting, GradientPart, GradientSums,
                                           DoubleGradients, DoubleDoubleGradient, ExactGradient> {
 public:
  RowGradient(const GradientSetting& setting, const RowSample& sample, const SavedStatistics* saved,
              ReadGradientRow read_row);

  // Several threads may do so at once.
  GradientSums sums(const GradientPart& part) const;

  // dx of a part, unless dx.data is null; adds its terms to the columns, unless they are null. Several threads may
  // do so at once, to columns of their own; or, of a setting in parts, to those of their part. Throws what read_row
  // throws.
  void write(const GradientPart& part, const RowsOut& dx, ColumnGradients* columns) const;

  double resolve(std::int64_t row, std::int64_t index, Number x, Number dy) const override;

  // One element's terms of its column, of which in_double_doubles() has been asked for this row.
  void add_term(std::int64_t column, Number x, Number dy, ColumnGradients& columns) const;

  // Whether the elements have an x-hat: x is finite, and s is not 0. exact() is of such a row.
  bool has_xhat() const noexcept { return has_ != Has::nothing; }

 private:
  friend RowLadder;

  // What is a number; dx is NaN where it is not one. Without x-hat there is no dx.
  enum class Has { nothing, xhat, dx_of_zeros, dx };

  struct Element {
    std::int64_t index;
    Number x;
    Number dy;
    Number weight;
  };

  // A number within error of a value.
  struct Term {
    DoubleDouble value{};
    double error = 0;
  };

  void limit_to(Has has) noexcept { has_ = std::min(has_, has); }
  const SavedStatistics* saved() const noexcept { return saved_ ? &*saved_ : nullptr; }
  void start_double_doubles();
  void take_doubles(const GradientSums& row);
  void take_double_doubles(const GradientSums& row);
  void find_exact();
  bool find_scaled();
  std::unique_ptr<RowGradient> again(const GradientSetting& setting) const;
  std::unique_ptr<const ExactGradient> make_exact() const;
  Bracket in_doubles(const Element& element) const;
  Bracket in_double_doubles(const Element& element, int exponent = 0) const;
  double exactly(const Element& element, const Bracket& known) const;
  bool is_g_finite() const;
  bool is_dx_zero(const GradientSums& sums) const;
  bool is_line() const;
  void write_by_table(const GradientPart& part, const RowsOut& dx, ColumnGradients* columns) const;
  void write_dx(const GradientPart& part, const RowsOut& dx) const;
  std::optional<Term> term(Number x, Number dy) const;

  Has has_ = Has::dx;
};

}  // namespace lnorm
