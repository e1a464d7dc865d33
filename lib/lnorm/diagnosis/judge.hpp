#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lnorm/core/options.hpp"
#include "lnorm/diagnosis/sum_losses.hpp"
#include "lnorm/measure/row_runs.hpp"

// Compares a kernel's rows with the exact ones: is each element as near as rounding can bring it?
namespace lnorm {

// What a kernel computes.
enum class Quantity { y, mean, rstd, dx, dweight, dbias };
std::string_view name(Quantity quantity) noexcept;

// What is the same for all rows of a tensor.
struct JudgeSetting {
  const Backend& backend;
  Formula formula;
  Rounding rounding = {};
  KernelModel kernel;
  OutputFormat output;
  bool saturates = false;
  double output_scale = 1;      // weight and bias include it
  AffineNumbers affine = {};    // of rows without their own; 1 and 0 where there are none
  Shape normalized_shape = {};  // the extents of a row's axes, in its order
  Axes row_axes = {};           // these, as of SummedShape
  std::optional<OutputFormat> steps = {};  // what rounding steps round to; empty: the output
  SummedShape summed_shape() const { return {normalized_shape, row_axes}; }
  // Whether the output has all digits of the arithmetic: then each row's scale is judged as well.
  bool is_wide() const { return std::ldexp(1.0, -output.precision()) <= kernel.arithmetic.unit; }
};

// A row as float64.
struct JudgedRow {
  std::int64_t number;
  std::span<const double> x;
  std::span<const double> actual;
  std::span<const double> exact;  // rounded once to the output dtype
  // An element is judged if its kept is not 0; if kept is empty all are. Requires actual to be exact where kept is 0.
  std::span<const char> kept = {};
  std::optional<GivenNumbers> given = {};  // statistics, unless they are computed
  const AffineNumbers* affine = nullptr;   // of its own; null: those of all rows

  bool is_kept(std::size_t i) const { return kept.empty() || kept[i] != 0; }
  std::int64_t judged() const {
    return kept.empty() ? std::ssize(actual)
                        : std::ssize(kept) - std::count(kept.begin(), kept.end(), 0);
  }
};

// The element that is off by the most, in parts of its bound.
struct WorstRatio {
  double ratio = 0;
  std::int64_t row = 0;
  std::int64_t element = 0;
  double actual = 0;
  double exact = 0;

  void take(const WorstRatio& other) {
    const bool is_first = row < other.row || (row == other.row && element < other.element);
    if (other.ratio > ratio || (other.ratio == ratio && other.ratio > 0 && !is_first)) {
      *this = other;
    }
  }
};

// What was found in some rows. The order in which it is put together does not matter.
struct JudgedRows {
  std::int64_t rows = 0;
  std::int64_t elements = 0;
  std::int64_t correctly_rounded = 0;
  std::int64_t beyond = 0;           // elements farther off than their bound
  std::int64_t non_finite = 0;       // of these: not finite where a number is expected
  std::int64_t unjudged_rows = 0;    // without a bound
  std::int64_t not_finite_rows = 0;  // of these: x is not finite
  std::int64_t scaled_rows = 0;      // whose scale alone is off by more than rounding explains
  WorstRatio tree;
  WorstRatio loop;   // of rows that are beyond the tree bound: in parts of the measured one
  WorstRatio scale;  // the row whose scale is off by the most; actual is the scale
  // Rows beyond the tree bound, and how many of them the measured bound holds.
  NumberBits doubtful_rows;
  std::int64_t loop_rows = 0;
  NumberBits affected_rows;
  std::vector<std::int64_t> affected_elements;  // of each column; empty: none
  std::int64_t whole_rows = 0;                  // affected in every element

  void merge(const JudgedRows& other);
  // Takes what was found in some rows for what had been found in them before.
  void replace(const JudgedRows& before, const JudgedRows& after);
};

// What a row's elements are, and how far off each may be.
struct RowBounds {
  std::vector<double> y;
  std::vector<double> bound;
  bool is_bounded = false;
  bool is_in_range = true;  // no sum leaves the range of the arithmetic, and s is no 0 in it
  WorstRatio scale = {};    // of the row's scale, where that is judged as well
  // Whether some mean and s bring every element within twice its own error: what sums lose shifts and scales a row as a whole. Of
  // measured bounds.
  bool is_line = true;
};

class RowJudge {
 public:
  explicit RowJudge(const JudgeSetting& setting) : setting_(setting) {}

  // Fills the bounds of a row by the tree bound, or by the measured one.
  using FindBounds = std::function<void(bool is_measured, RowBounds& bounds)>;

  // Adds what is found in a row by the tree bound: of y, or by other bounds than those of the forward pass. Returns whether the row is
  // beyond it.
  bool judge(const JudgedRow& row, JudgedRows& found);
  bool judge_by(const JudgedRow& row, const FindBounds& bounds, JudgedRows& found);

  // The same by the measured bound, of a row that is beyond that of the tree. before: what was found of it by that.
  void settle(const JudgedRow& row, const SumLosses& losses, JudgedRows& before, JudgedRows& after);
  void settle_by(const JudgedRow& row, const FindBounds& bounds, JudgedRows& before,
                 JudgedRows& after);
  // One after the other, of a row that need not wait for others. With a depth there is nothing to measure.
  void judge_and_settle_by(const JudgedRow& row, const FindBounds& bounds, JudgedRows& found);

  // The same for a row of which so many elements are judged, all of them exact and finite.
  static void count_exact(std::int64_t elements, JudgedRows& found);

 private:
  // Whether it is within the bounds at a glance, and changes nothing of the worst. Then it is counted.
  bool passes(const JudgedRow& row, JudgedRows& found) const;
  bool judge_by(const JudgedRow& row, bool is_finite, const FindBounds& bounds, JudgedRows& found);
  // Of bounds that were filled: the tree's, and if it is not null the measured ones.
  bool judge_bounds(const JudgedRow& row, const RowBounds* measured, JudgedRows& found) const;
  void fill(const JudgedRow& row, const FindBounds& find, bool is_measured,
            RowBounds& bounds) const;
  void settle_bounds(const JudgedRow& row, const FindBounds& bounds, JudgedRows& before,
                     JudgedRows& after);
  void judge_elements(const JudgedRow& row, const RowBounds& bounds, JudgedRows& found) const;
  bool is_line(const JudgedRow& row, const RowStatistics& statistics) const;
  // Of y.
  void find_bounds(const JudgedRow& row, const SumLosses* losses, RowBounds& bounds) const;
  const AffineNumbers& affine_of(const JudgedRow& row) const {
    return row.affine != nullptr ? *row.affine : setting_.affine;
  }
  // Half an ulp of what the kernel rounds, which may be in the binade above.
  double last_rounding(const RowBounds& bounds, std::size_t i) const {
    return setting_.output.half_ulp(std::fabs(bounds.y[i]) + bounds.bound[i]);
  }
  // Whether an element is not finite where a number is expected.
  static bool is_lost(const JudgedRow& row, std::size_t i);
  // The greatest ratio to the bound. Fills ratios_.
  WorstRatio worst_of(const JudgedRow& row, const RowBounds& bounds) const;
  bool may_overflow(const RowBounds& bounds, std::size_t i, double actual) const;
  double ratio_of(const JudgedRow& row, const RowBounds& bounds, std::size_t i) const;
  // What the row's scale is off by, in parts of what rounding explains. actual is the scale.
  WorstRatio scale_of(const JudgedRow& row, const RowStatistics& statistics,
                      const StatisticErrors& errors, const RowBounds& bounds) const;

  const JudgeSetting& setting_;
  RowBounds tree_;  // buffers: rows may be long
  RowBounds measured_;
  mutable std::vector<double> ratios_;  // of the elements that were looked at last
  std::int64_t beyond_ = 0;             // how many rows were, one after another
};

}  // namespace lnorm
