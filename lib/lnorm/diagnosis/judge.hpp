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

// Holds a kernel's rows against the exact ones: is each element as near as rounding can bring it?
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
  double output_scale = 1;  // weight and bias include it
  // As many numbers as a row has elements; 1 and 0 where there are none.
  std::vector<double> weight = {};
  std::vector<double> bias = {};
  Shape normalized_shape = {};  // the extents of a row's axes, in its order
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
  bool is_in_range = true;  // no sum leaves the range of the arithmetic
};

class RowJudge {
 public:
  RowJudge(const JudgeSetting& setting, std::int64_t row_length);

  // Adds what is found in a row by the tree bound.
  void judge(const JudgedRow& row, JudgedRows& found);

  // The same by the measured bound, of a row that is beyond that of the tree. before: what was found of it by that.
  void settle(const JudgedRow& row, const SumLosses& losses, JudgedRows& before, JudgedRows& after);

  // Both by other bounds than those of the forward pass: the tree's, or the measured ones. judge_by returns whether the row is beyond
  // the tree bound.
  using FindBounds = std::function<RowBounds(bool is_measured)>;
  bool judge_by(const JudgedRow& row, const FindBounds& bounds, JudgedRows& found);
  void settle_by(const JudgedRow& row, const FindBounds& bounds, JudgedRows& before,
                 JudgedRows& after);
  // One after the other, of a row that need not wait for others. With a depth there is nothing to measure.
  void judge_and_settle_by(const JudgedRow& row, const FindBounds& bounds, JudgedRows& found);

  // The same for a row of which so many elements are judged, all of them exact and finite.
  static void count_exact(std::int64_t elements, JudgedRows& found);

 private:
  // Whether it is within the bounds at a glance, and changes nothing of the worst.
  bool passes(const JudgedRow& row, JudgedRows& found) const;
  // losses: null for the tree bound.
  void judge_finite(const JudgedRow& row, const SumLosses* losses, JudgedRows& found);
  void judge_elements(const JudgedRow& row, bool is_bounded, JudgedRows& found);
  // measured: null for the tree bound.
  bool judge_bounds(const JudgedRow& row, const RowBounds& tree, const RowBounds* measured,
                    JudgedRows& found);
  // Whether some mean and s bring every element within twice its own error. What sums lose shifts and scales a row as a whole.
  bool is_line(const JudgedRow& row, const RowStatistics& statistics) const;
  // Fills y_ and bound_.
  void find_bounds(const JudgedRow& row, const RowStatistics& statistics,
                   const StatisticErrors& errors);
  // Half an ulp of what the kernel rounds, which may be in the binade above.
  double last_rounding(std::size_t i) const {
    return setting_.output.half_ulp(std::fabs(y_[i]) + bound_[i]);
  }
  // The greatest ratio to bound_.
  WorstRatio worst_of(const JudgedRow& row) const;
  double ratio_of(const JudgedRow& row, std::size_t i) const;
  // What the row's scale is off by, in parts of what rounding explains. actual is the scale.
  WorstRatio scale_of(const JudgedRow& row, const RowStatistics& statistics,
                      const StatisticErrors& errors) const;

  const JudgeSetting& setting_;
  std::vector<double> y_;      // the exact values, but for float64
  std::vector<double> bound_;  // how far off each may be
};

}  // namespace lnorm
