#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/moments.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/measure/column_summary.hpp"
#include "lnorm/measure/histogram.hpp"

// What normalization does to every row, and a summary over the rows.
namespace lnorm {

// One row of the input, what layer normalization makes of it, and what softmax does, if asked for.
struct StatsRow {
  Moments input;
  Moments output;
  Moments softmax;
};

// The same of some successive rows, one after another; softmax is empty where nobody asked for it.
struct StatsBlock {
  std::vector<Moments> input;
  std::vector<Moments> output;
  std::vector<Moments> softmax;

  std::size_t rows() const noexcept { return input.size(); }
  StatsRow row(std::size_t r) const {
    return {input[r], output[r], softmax.empty() ? Moments() : softmax[r]};
  }
};

// A column of the report.
struct StatsColumn {
  std::string_view tensor;  // "input"
  std::string_view name;    // "mean"
  Moments StatsRow::*moments;
  std::vector<Moments> StatsBlock::*block;
  double Moments::*value;

  double of(const StatsRow& row) const noexcept { return row.*moments.*value; }
};

// In the order of the report.
std::span<const StatsColumn> stats_columns(bool softmax) noexcept;

// Those, and what else is kept of every row: with softmax its maximum.
std::span<const StatsColumn> kept_columns(bool softmax) noexcept;

// Calls see with so many rows from the first on, in order; may be called again.
using EachStatsRow = std::function<void(std::int64_t first, std::int64_t count,
                                        const std::function<void(const StatsRow&)>& see)>;

// Where there are NaNs and infinities.
struct NonFinite {
  std::int64_t rows = 0;
  std::int64_t elements = 0;
  std::int64_t first_row = -1;

  void add(std::int64_t row, std::int64_t count) noexcept {
    if (count == 0) return;
    if (rows++ == 0) first_row = row;
    elements += count;
  }

  // Of rows that begin with this one.
  void append(std::int64_t row, const NonFinite& next) noexcept {
    if (rows == 0 && next.rows > 0) first_row = row + next.first_row;
    rows += next.rows;
    elements += next.elements;
  }
};

// Exact. The columns lack their medians until somebody finds them.
struct StatsSummary {
  std::int64_t rows = 0;
  NonFinite input;
  NonFinite output;  // of the rows whose input is finite
  std::vector<ColumnSummary> columns;

  StatsSummary() = default;
  explicit StatsSummary(std::span<const StatsColumn> of) : columns(of.size()) {}

  void add(std::span<const StatsColumn> of, const StatsBlock& block);
  // Of the rows that follow.
  void append(const StatsSummary& next);

  // As core/serialize.hpp has it.
  template <class Archive>
  void serialize(Archive& archive) {
    archive(rows, input, output, columns);
  }
};

// The distributions of elements and rows; what is not finite is left out.
struct StatsHistograms {
  Histogram input;
  Histogram output;
  Histogram row_means;
  Histogram row_variances;
};

// All that a report needs.
struct Stats {
  TensorInfo x;                   // the whole tensor, where only some rows were looked at
  Axes axes;                      // normalized
  std::optional<RowSlice> slice;  // these rows; the numbers below count from the first of them
  Formula formula;
  bool weight = false;  // whether the output was multiplied by one, or by 1 + weight
  bool zero_centered_weight = false;
  bool bias = false;
  DType out = DType::float64;
  std::span<const StatsColumn> columns;
  StatsSummary summary;
  EachStatsRow each_row;
  std::optional<StatsHistograms> histograms;

  // Of the whole tensor, the number of a row that was looked at.
  std::int64_t row_number(std::int64_t row) const noexcept {
    return row + (slice ? slice->first : 0);
  }
};

}  // namespace lnorm
