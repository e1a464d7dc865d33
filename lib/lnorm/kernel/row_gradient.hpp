#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/exact_gradient.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/gradient_statistics.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/row_normalizer.hpp"

namespace lnorm {

// Whether the rows of a setting start with narrow sums.
bool is_narrow_setting(const GradientSetting& setting) noexcept;

// Whether g may be the same for all of a row, as far as its sums tell.
bool may_be_constant(double g_sum, double g_squares, std::int64_t n) noexcept;

// One row on its way through the backward pass, as kernel/backward.hpp defines it, whole or in parts:
//
//   RowGradient row(setting, sample_of(its first part of x), saved, read_row);
//   while (row.wants_sums()) row.take(the sum of row.sums(part) over all parts);
//   row.write(part, dx, columns) for all parts
//
// It goes from narrow sums to wide ones to exact integers by itself, as RowNormalizer does.
class RowGradient final : public GradientResolver {
 public:
  RowGradient(const GradientSetting& setting, const RowSample& sample, const SavedStatistics* saved,
              ReadGradientRow read_row);

  bool wants_sums() const noexcept { return pass_ != Pass::none; }
  // Several threads may do so at once.
  GradientSums sums(const GradientPart& part) const;
  void take(const GradientSums& row);
  // All of that, by read_row.
  void sum_up();

  // dx of a part, unless dx.data is null; adds its terms to the columns, unless they are null. Several threads may
  // do so at once, to columns of their own; or, of a setting in parts, to those of their part. Throws what read_row
  // throws.
  void write(const GradientPart& part, const RowsOut& dx, ColumnGradients* columns) const;

  double resolve(std::int64_t row, std::int64_t index, Number x, Number dy) const override;

  // One element's terms of its column, of which wide() has been asked for this row.
  void add_term(std::int64_t column, Number x, Number dy, ColumnGradients& columns) const;

  // Whether the elements have an x-hat: x is finite, and s is not 0.
  bool has_xhat() const noexcept { return is_x_finite_ && is_defined_; }
  // Of a row with an x-hat.
  const ExactGradient& exact() const;

 private:
  enum class Pass { none, narrow, wide };

  // A number within error of a value.
  struct WideTerm {
    DoubleDouble value{};
    double error = 0;
  };

  void start_narrow();
  void start_wide();
  void take_narrow(const GradientSums& row);
  void take_wide(const GradientSums& row);
  void find_exact();
  bool is_constant() const;  // x
  bool find_g_finite();
  bool is_dx_zero(const GradientSums& sums) const;
  bool has_dx() const noexcept { return is_x_finite_ && is_g_finite_ && has_derivative_; }
  Dyadic g_of(std::int64_t index, Number dy) const;
  const RowGradient& better() const;
  void write_dx(const GradientPart& part, const RowsOut& dx) const;
  void add_terms(const GradientPart& part, ColumnGradients& columns) const;
  std::optional<WideTerm> term(Number x, Number dy) const;

  GradientSetting setting_;
  RowSample sample_;
  std::optional<SavedStatistics> saved_;
  ReadGradientRow read_row_;
  Pass pass_ = Pass::none;
  double center_ = 0;
  int tries_ = 0;
  bool is_x_finite_ = true;
  bool is_g_finite_ = true;
  bool is_defined_ = true;  // if not, xhat is 0/0
  bool has_derivative_ = true;
  bool is_zero_ = false;  // all of dx is 0
  std::optional<NarrowGradient> narrow_;
  std::optional<WideGradient> wide_;
  mutable std::unique_ptr<RowGradient> better_;  // the same row with wide statistics
  mutable std::unique_ptr<const ExactGradient> exact_;
  mutable std::mutex mutex_;  // of the two
};

}  // namespace lnorm
