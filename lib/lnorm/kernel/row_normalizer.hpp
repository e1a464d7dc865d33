#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/exact_row.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/statistics.hpp"
#include "lnorm/kernel/triple_sum.hpp"

namespace lnorm {

// What is the same for all rows of a tensor.
struct RowSetting {
  const Kernel& kernel;
  DType in;
  DType out;
  std::int64_t row_length;
  const Affine& affine;
  const Formula& formula;
  bool saves_statistics = false;  // mean() or rstd() will be asked for
  bool in_parts = false;          // the row is long, so that some results will need wide statistics
};

// What a row is about, from its first elements.
struct RowSample {
  Number first;
  double center;  // for narrow sums: the mean of a few, or 0 where that is about as good
};
RowSample sample_of(const RowsIn& row) noexcept;

// One row on its way through layer normalization, as kernel/layer_norm.hpp defines it, whole or in parts:
//
//   RowNormalizer row(setting, sample_of(its first part), read_row);
//   while (row.wants_sums()) row.take(the sum of row.sums(part) over all parts);
//   row.write(part, offset, y) for all parts
//
// It goes from narrow statistics to wide ones to exact integers by itself, for a row or for single elements. What
// it lacks then it sums up by reading the row once more.
class RowNormalizer final : public Resolver {
 public:
  // read_row may bring the parts in any order.
  RowNormalizer(const RowSetting& setting, const RowSample& sample, ReadRow read_row);

  // Of a row whose narrow statistics are known.
  RowNormalizer(const RowSetting& setting, const RowSample& sample, ReadRow read_row,
                const NarrowStatistics& narrow);

  bool wants_sums() const noexcept { return pass_ != Pass::none; }
  // Several threads may do so at once.
  Sums sums(const RowsIn& part) const;
  void take(const Sums& row);
  // All of that, by read_row.
  void sum_up();

  // Each rounded once to float64. NaN where an element is not finite, or where the formula has no number.
  // Where the setting saves statistics; sum and variance not by RMS.
  double sum() const;
  double mean() const;
  double variance() const;
  double rstd() const;

  // offset: where in the row the part begins. Several threads may do so at once. Throws what read_row throws.
  void write(const RowsIn& part, std::int64_t offset, const RowsOut& y) const;

  double resolve(std::int64_t index, Number x) const override;

 private:
  enum class Pass { none, narrow, wide };

  void start_wide();
  void take_narrow(const Sums& row);
  void take_wide(const Sums& row);
  void find_exact();
  ExactSums read_exact_sums() const;
  bool is_constant() const;
  const RowNormalizer& better() const;
  // The sum divided by n, rounded, where a TripleSum decides it.
  std::optional<double> sum_divided_by(std::int64_t n) const;
  const ExactRow& exact() const;

  RowSetting setting_;
  RowSample sample_;
  ReadRow read_row_;
  Pass pass_ = Pass::none;
  double center_ = 0;
  int tries_ = 0;
  bool is_finite_ = true;   // if not, all is NaN
  bool is_defined_ = true;  // if not, y and rstd are NaN: 0/0
  std::optional<NarrowStatistics> narrow_;
  std::optional<CenteredSums> centered_;
  std::optional<WideStatistics> wide_;
  mutable std::optional<TripleSum> triple_sum_;
  mutable std::unique_ptr<RowNormalizer> better_;  // the same row with wide statistics
  mutable std::unique_ptr<const ExactRow> exact_;
  mutable std::mutex mutex_;  // of the three
};

}  // namespace lnorm
