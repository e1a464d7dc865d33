#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lnorm/kernel/column_gradients.hpp"
#include "lnorm/kernel/gradient.hpp"
#include "lnorm/kernel/row_normalizer.hpp"

namespace lnorm {

// One row on its way through the backward pass, as kernel/backward.hpp defines it, whole or in parts:
//
//   RowGradient row(setting, sample_of(its first part of x), saved, read_row);
//   while (row.wants_sums()) row.take(the sum of row.sums(part) over all parts);
//   row.write(part, dx, columns) for all parts
//
// It goes from narrow sums to wide ones to exact integers by itself, as RowNormalizer does.
class RowGradient {
 public:
  RowGradient(const GradientSetting& setting, const RowSample& sample, const SavedStatistics* saved,
              ReadGradientRow read_row);

  bool wants_sums() const noexcept;
  // Several threads may do so at once.
  GradientSums sums(const GradientPart& part) const;
  void take(const GradientSums& row);
  // All of that, by read_row.
  void sum_up();

  // dx of a part, unless dx.data is null; adds its terms to the columns, unless they are null. Several threads may
  // do so at once, to columns of their own or in parts of their own. Throws what read_row throws.
  void write(const GradientPart& part, const RowsOut& dx, ColumnGradients* columns) const;
};

}  // namespace lnorm
