#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/exact_row.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/row_ladder.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/kernel/statistics.hpp"

namespace lnorm {

// What is the same for all rows of a tensor.
struct RowSetting {
  const Backend& backend;
  DType in;
  DType out;
  std::int64_t row_length;
  const Affine& affine;
  Formula formula;
  bool saves_statistics = false;      // mean() or rstd() will be asked for
  bool needs_double_doubles = false;  // as long rows do: rows start there
  std::int64_t first_number = 0;      // of weight and bias, as its layout has it
  bool is_scaled = false;             // of a row that another one has brought into range

  RowSetting of_row(std::int64_t row) const {
    RowSetting setting = *this;
    setting.first_number = affine.layout().first(row);
    return setting;
  }
};

// One row on its way through layer normalization, as kernel/layer_norm.hpp defines it:
//
//   RowNormalizer row(setting, sample_of(its first part), read_row);
//   while (row.wants_sums()) row.take(the sum of row.sums(part) over all parts);
//   row.write(part, offset, y) for all parts
class RowNormalizer final : public Resolver,
                            public RowLadder<RowNormalizer, RowSetting, RowsIn, Sums,
                                             DoubleStatistics, DoubleDoubleStatistics, ExactRow> {
 public:
  RowNormalizer(const RowSetting& setting, const RowSample& sample, ReadRow read_row);

  // The row's statistics in doubles are known.
  RowNormalizer(const RowSetting& setting, const RowSample& sample, ReadRow read_row,
                const DoubleStatistics& statistics);

  // The row's statistics are saved: nothing is summed, and an element depends on no other.
  RowNormalizer(const RowSetting& setting, const SavedStatistics& saved);

  // Several threads may do so at once.
  Sums sums(const RowsIn& part) const;

  // Each is rounded once to float64: NaN where an element is not finite, or where the formula has no number. Requires that
  // the setting saves statistics; there is no sum without a mean, and the variance is the mean of squares then.
  double sum() const;
  double mean() const;
  double variance() const;
  double rstd() const;

  // Puts those that there is room for where those of row r belong.
  void save(const RowNumbersOut& room, std::size_t r) const {
    if (room.mean != nullptr) room.mean[r] = mean();
    if (room.rstd != nullptr) room.rstd[r] = rstd();
    if (room.variance != nullptr) room.variance[r] = variance();
  }

  // offset: where in the row the part begins. Several threads may do so at once. Throws what read_row throws.
  void write(const RowsIn& part, std::int64_t offset, const RowsOut& y) const;

  double resolve(std::int64_t index, Number x) const override;

  // What rounds: y / divisor, once, to a dtype narrower than float64. The divisor is positive.
  struct Quotient {
    double divisor;
    DType dtype;
  };
  double resolve(std::int64_t index, Number x, const Quotient& quotient) const;

  // What doubles tell of an element without a low part. The numbers come in registers: a Number that is stored in two parts and
  // loaded in one waits for every store before it, and stores past the caches take long.
  static Bracket in_doubles(const DoubleStatistics& statistics, double x, double weight,
                            double bias, const Quotient& quotient);

  // Whether y of an element is a number, however large; and whether that is 0, however small.
  bool has_number(std::int64_t index, Number x) const;
  bool is_zero(std::int64_t index, Number x) const;
  // The same of xhat.
  bool is_mean(Number x) const { return is_zero(Element{0, x, {1}, {}, {1, DType::float64}}); }

 private:
  friend RowLadder;
  enum class State { not_finite, undefined, regular };  // undefined: y and rstd are 0/0

  struct Element {
    std::int64_t number;  // of weight and bias
    Number x;
    Number weight;
    Number bias;
    Quotient quotient;

    bool has_terms_within(double most) const noexcept;
  };

  Element element(std::int64_t index, Number x, const Quotient& quotient) const;
  bool is_zero(const Element& element) const;
  void start_double_doubles() { start(Precision::double_doubles, center()); }
  void take_doubles(const Sums& row);
  void take_double_doubles(const Sums& row);
  void find_exact();
  bool find_scaled();
  std::unique_ptr<RowNormalizer> again(const RowSetting& setting) const;
  std::unique_ptr<const ExactRow> make_exact() const;
  Bracket in_doubles(const Element& e) const {
    return in_doubles(*doubles_, e.x.high, e.weight.high, e.bias.high, e.quotient);
  }
  Bracket in_double_doubles(const Element& element) const;
  // By saved statistics the largest |xhat| of a part; nothing where the kernels cannot take it.
  std::optional<double> reach_of(const RowsIn& part) const;
  // Of elements that have one number, or of all where each has its own. reach: by saved statistics.
  void write_run(const RowsIn& run, std::int64_t offset, std::optional<double> reach,
                 const RowsOut& y) const;
  double saved_rstd() const;
  double exactly(const Element& element, const Bracket& known) const;
  // The sum divided by n, rounded, where a TripleSum decides it.
  std::optional<double> sum_divided_by(std::int64_t n) const;

  State state_ = State::regular;
  mutable std::optional<TripleSum> triple_sum_;
};

}  // namespace lnorm
