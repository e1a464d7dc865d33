#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/in_parallel.hpp"
#include "lnorm/core/moments.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/core/options.hpp"
#include "lnorm/core/tensor_info.hpp"
#include "lnorm/measure/histogram.hpp"
#include "lnorm/measure/medians.hpp"
#include "lnorm/measure/top.hpp"

// What normalization does to every row, and a summary over the rows.
namespace lnorm {

// One row of the input, what layer normalization makes of it, and what softmax does, if asked for.
struct StatsRow {
  Moments input;
  Moments output;
  Moments softmax;
};

// The numbers of some successive rows, one after another; softmax is empty where nobody asked for it.
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
  std::string_view key;  // "input.mean"
  Moments StatsRow::*moments;
  std::vector<Moments> StatsBlock::*block;
  double Moments::*value;

  std::string_view tensor() const noexcept { return key.substr(0, key.find('.')); }
  std::string_view name() const noexcept { return key.substr(key.find('.') + 1); }
  double of(const StatsRow& row) const noexcept { return row.*moments.*value; }
};

// They have the order of the report.
std::span<const StatsColumn> stats_columns(bool softmax) noexcept;

// Those of the input alone.
std::span<const StatsColumn> input_columns() noexcept;

// Those of a report, and what else is kept of every row: with softmax its maximum.
std::span<const StatsColumn> kept_columns(std::span<const StatsColumn> reported) noexcept;

// Calls see with so many rows from the first on, in order; may be called again.
using EachStatsRow = std::function<void(std::int64_t first, std::int64_t count,
                                        const std::function<void(const StatsRow&)>& see)>;

// Where there are NaNs and infinities.
struct NonFinite {
  std::int64_t rows = 0;
  std::int64_t elements = 0;
  std::int64_t first_row = -1;
  std::int64_t first_element = -1;  // of that row, if somebody has looked
  std::int64_t most = 0;            // in a row

  void add(std::int64_t row, std::int64_t count, std::int64_t element = -1) noexcept {
    if (count > 0) append(row, {1, count, 0, element, count});
  }

  // Adds what is not finite in rows that begin with this one.
  void append(std::int64_t row, const NonFinite& next) noexcept {
    if (rows == 0 && next.rows > 0) {
      first_row = row + next.first_row;
      first_element = next.first_element;
    }
    rows += next.rows;
    elements += next.elements;
    most = std::max(most, next.most);
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
  // Adds the statistics of the rows that follow.
  void append(const StatsSummary& next);

  // core/serialize.hpp calls it.
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

  void merge(const StatsHistograms& other) {
    input.merge(other.input);
    output.merge(other.output);
    row_means.merge(other.row_means);
    row_variances.merge(other.row_variances);
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(input, output, row_means, row_variances);
  }
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
  enum class Given { nothing, rstd, variance };
  Given given = Given::nothing;           // beside the mean: the outputs are by these
  bool residual = false;                  // x is a sum with one
  bool mask = false;                      // elements are left out
  std::vector<std::string> rounded = {};  // which steps of the norm are rounded
  DType out = DType::float64;
  std::span<const StatsColumn> columns;
  StatsSummary summary;
  EachStatsRow each_row;
  InParallel in_parallel = one_by_one;  // for what is made of rows
  std::optional<StatsHistograms> histograms;
  std::optional<Top> top;  // which rows are reported, in place of all

  // The number in the whole tensor of a row that was looked at.
  std::int64_t row_number(std::int64_t row) const noexcept {
    return row + (slice ? slice->first : 0);
  }

  // The full index of the first element that is not finite.
  std::optional<Shape> first_index(const NonFinite& found) const {
    if (found.first_element < 0) return std::nullopt;
    return index_in_file(x, axes, row_number(found.first_row), found.first_element);
  }
};

struct NumberedRow {
  std::int64_t number = 0;
  StatsRow row;
};

// The rows that are reported, in that order, of stats with a top.
std::vector<NumberedRow> top_rows(const Stats& stats);

// The element of the greatest |x|; of several the first in C order.
struct LargestElement {
  Number value;
  std::int64_t position = 0;  // in C order

  bool is_beaten_by(const LargestElement& other) const noexcept {
    if (std::fabs(other.value.high) != std::fabs(value.high)) {
      return std::fabs(other.value.high) > std::fabs(value.high);
    }
    // high is the element rounded, and low what it lacks.
    const double low = value.high < 0 ? -value.low : value.low;
    const double other_low = other.value.high < 0 ? -other.value.low : other.value.low;
    return other_low > low || (other_low == low && other.position < position);
  }
};

struct TensorStats {
  TensorInfo x;                   // the whole tensor, where only some rows were looked at
  Axes axes;                      // along which rows go
  std::optional<RowSlice> slice;  // these rows, of which there are so many:
  std::int64_t rows = 0;
  std::int64_t row_length = 0;
  std::int64_t ddof = 0;  // of the variances
  NonFinite non_finite;
  ColumnSummary means;  // over the rows whose elements are all finite
  ColumnSummary variances;
  std::optional<LargestElement> largest;  // of the finite elements; nothing if there are none

  template <class Archive>
  void serialize(Archive& archive) {
    archive(x, axes, slice, rows, row_length, ddof, non_finite, means, variances, largest);
  }
};

// By how much it stands out: as its most extreme row does.
double score_of_tensor(TopBy by, const TensorStats& tensor) noexcept;

// The statistics of a tensor under its name in its set.
struct NamedStats {
  std::string name;
  TensorStats stats;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, stats);
  }
};

}  // namespace lnorm
