#include "lnorm/pipeline/report_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/features.hpp"
#include "lnorm/kernel/softmax.hpp"

namespace lnorm {

namespace {

void add_rows(const RowsIn& rows, std::int64_t first_row, HeatMap::Part& part) {
  Chunk chunk;
  // Several short rows are decoded at once.
  const std::int64_t at_once = std::max<std::int64_t>(1, kChunk / rows.row_length);
  for (std::int64_t r = 0; r < rows.rows; r += at_once) {
    const std::int64_t count = std::min(at_once, rows.rows - r);
    for (std::int64_t start = 0; start < rows.row_length; start += kChunk) {
      const std::int64_t n = std::min(kChunk, rows.row_length - start);
      load(part_of(row_of(rows, r), start, n).data, rows.dtype, rows.byte_order, count * n, chunk);
      for (std::int64_t i = 0; i < count; ++i) {
        part.add(first_row + r + i, start, {chunk.high + i * n, static_cast<std::size_t>(n)});
      }
    }
  }
}

RowSeries series_of(const RowsIn& row, Partition points) {
  RowSeries series(points);
  for (std::int64_t point = 0; point < points.parts; ++point) {
    for_each_element(part_of(row, points.begin(point), points.size(point)),
                     [&](std::int64_t, Number x) { series.add(point, x.high); });
  }
  return series;
}

RowSeries softmax_of_all(const RowsIn& x, DType dtype, Partition points) {
  std::vector<std::byte> elements(static_cast<std::size_t>(x.row_length) * item_size(dtype));
  softmax(x, {elements.data(), dtype});
  return series_of({elements.data(), dtype, std::endian::native, 1, x.row_length}, points);
}

// Softmax keeps the order, so that ends have ends. It is computed in float64: exact results of a long row take seconds, and look the
// same. ends: of x, whose elements are finite.
RowSeries softmax_of_ends(const RowsIn& x, const RowSeries& ends) {
  double max = ends.points().front().high;
  for (const RowSeries::Point& point : ends.points()) max = std::max(max, point.high);
  Chunk chunk;
  double sum = 0;
  for (std::int64_t start = 0; start < x.row_length; start += kChunk) {
    const std::int64_t n = load_chunk(x, start, chunk);
    double part = 0;
    for (std::int64_t i = 0; i < n; ++i) part += std::exp(chunk.high[i] - max);
    sum += part;
  }
  RowSeries series(ends.elements());
  for (std::int64_t point = 0; point < ends.elements().parts; ++point) {
    const auto [low, high] = ends.points()[static_cast<std::size_t>(point)];
    series.add(point, std::exp(low - max) / sum);
    series.add(point, std::exp(high - max) / sum);
  }
  return series;
}

}  // namespace

struct ReportDataObserver::Findings {
  BlockFindings stats;
  HeatMap::Part x;
  HeatMap::Part y;
  std::vector<OutlierRow> outlier_rows;
  std::vector<FeatureSums> features;
};

ReportDataObserver::ReportDataObserver(const Plan& plan, const ReportDataSize& size, bool softmax)
    : size_(size),
      softmax_(softmax),
      stats_(plan, {.softmax = softmax, .histograms = true}),
      x_({plan.rows, size.grid_rows}, {plan.row_length, size.grid_columns}),
      y_(x_),
      points_(plan.row_length, size.points),
      most_outliers_(most_outliers(size.outliers, plan.rows)),
      outlier_rows_(most_outliers_),
      features_(plan.row_length <= kMostFeatures ? static_cast<std::size_t>(plan.row_length) : 0) {
  for (std::atomic<double>& least : least_) least = kNan;
}

RowDetail ReportDataObserver::detail(const RowBlock& block, std::int64_t row,
                                     const StatsRow& found) const {
  const RowsIn x = row_of(block.x, row);
  const RowsIn y = row_of(output_rows(block), row);
  RowDetail detail{series_of(x, points_), series_of(y, points_), {}};
  const bool is_long = points_.is_coarse() && found.input.non_finite == 0 && !has_low(x.dtype);
  detail.softmax = is_long ? softmax_of_ends(x, detail.x) : softmax_of_all(x, y.dtype, points_);
  return detail;
}

std::vector<OutlierRow> ReportDataObserver::outlier_rows(const RowBlock& block,
                                                         const StatsBlock& rows) const {
  OutlierRows here(most_outliers_);
  for (std::size_t r = 0; r < rows.rows(); ++r) {
    const std::int64_t row = block.first_row + static_cast<std::int64_t>(r);
    const StatsRow found_row = rows.row(r);
    const OutlierRows::Scores scores = OutlierRows::scores(found_row);
    const bool stands_out = !std::equal(
        scores.begin(), scores.end(), least_.begin(),
        [](double score, const std::atomic<double>& least) { return !is_ahead(score, least); });
    if (stands_out) here.add({row, found_row, nullptr});
  }
  std::vector<OutlierRow> found = here.once_each();
  std::sort(found.begin(), found.end(),
            [](const OutlierRow& a, const OutlierRow& b) { return a.row < b.row; });
  for (OutlierRow& row : found) {
    row.detail =
        std::make_shared<const RowDetail>(detail(block, row.row - block.first_row, row.found));
  }
  return found;
}

BlockFindings ReportDataObserver::examine(const RowBlock& block) const {
  Findings findings{stats_.examine(block),
                    x_.part(block.first_row, block.x.rows),
                    y_.part(block.first_row, block.x.rows),
                    {},
                    std::vector<FeatureSums>(features_.size())};
  add_rows(block.x, block.first_row, findings.x);
  add_rows(output_rows(block), block.first_row, findings.y);
  if (!features_.empty()) sum_features(block.x, findings.features.data());
  findings.outlier_rows =
      outlier_rows(block, std::any_cast<const StatsObserver::Findings&>(findings.stats).rows);
  return findings;
}

void ReportDataObserver::see(const RowBlock& block, const BlockFindings& findings) {
  const auto& found = std::any_cast<const Findings&>(findings);
  stats_.see(block, found.stats);
  x_.add(found.x);
  y_.add(found.y);
  for (const OutlierRow& row : found.outlier_rows) outlier_rows_.add(row);
  for (std::size_t i = 0; i < features_.size(); ++i) features_[i].append(found.features[i]);
  const OutlierRows::Scores least = outlier_rows_.least();
  std::copy(least.begin(), least.end(), least_.begin());
}

TensorReportData ReportDataObserver::report_data(const TensorInfo& x) const {
  TensorReportData result;
  result.stats = stats_.stats(x);
  result.softmax = softmax_;
  result.x = x_;
  result.y = y_;
  result.outlier_rows = outlier_rows_;
  const Stats& stats = result.stats;
  result.features = {
      stats.x,    stats.axes,     stats.slice, stats.summary.rows, stats.formula.ddof,
      stats.mask, stats.residual, features_};
  result.feature_bands = absmax_bands(result.features, size_.bands);
  result.outlier_features = most_outliers(size_.outliers, result.features.count());
  std::vector<double (*)(const StatsRow& row)> values;
  for (const RowProfile& profile : kRowProfiles) values.push_back(profile.of);
  if (!softmax_) values.pop_back();
  const std::int64_t rows = stats.summary.rows;
  result.profiles =
      bands_of(values, {rows, size_.bands}, [&](const auto& see) { stats.each_row(0, rows, see); });
  return result;
}

}  // namespace lnorm
