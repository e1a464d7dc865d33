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

// A column of the report.
struct StatsColumn {
  std::string_view tensor;  // "input"
  std::string_view name;    // "mean"
  Moments StatsRow::*moments;
  double Moments::*value;

  double of(const StatsRow& row) const noexcept { return row.*moments.*value; }
};

// In the order of the report.
std::span<const StatsColumn> stats_columns(bool softmax) noexcept;

// Calls its argument with every row, in order; may be called again.
using EachStatsRow = std::function<void(const std::function<void(const StatsRow&)>&)>;

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
};

struct StatsSummary {
  std::int64_t rows = 0;
  NonFinite input;
  NonFinite output;  // of the rows whose input is finite
  std::vector<ColumnSummary> columns;
};

// Exact, in memory that does not grow with the rows.
StatsSummary summarize(std::span<const StatsColumn> columns, const EachStatsRow& each_row);

// The distributions of elements and rows; what is not finite is left out.
struct StatsHistograms {
  Histogram input;
  Histogram output;
  Histogram row_means;
  Histogram row_variances;
};

// All that a report needs.
struct Stats {
  TensorInfo x;
  Axes axes;  // normalized
  Formula formula;
  bool weight = false;  // whether the output was multiplied by one, or by 1 + weight
  bool zero_centered_weight = false;
  bool bias = false;
  DType out = DType::float64;
  std::span<const StatsColumn> columns;
  StatsSummary summary;
  EachStatsRow each_row;
  std::optional<StatsHistograms> histograms;
};

}  // namespace lnorm
