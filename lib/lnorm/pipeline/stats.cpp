#include "lnorm/pipeline/stats.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/moments.hpp"
#include "lnorm/kernel/softmax.hpp"

namespace lnorm {

static_assert(std::is_trivially_copyable_v<StatsRow>, "rows are spooled as bytes");

namespace {

void add_elements(const RowsIn& rows, Histogram& histogram) {
  Chunk chunk;
  const std::int64_t elements = rows.rows * rows.row_length;
  const auto size = static_cast<std::int64_t>(item_size(rows.dtype));
  for (std::int64_t start = 0; start < elements; start += kChunk) {
    const std::int64_t n = std::min(kChunk, elements - start);
    load(rows.data + start * size, rows.dtype, rows.byte_order, n, chunk);
    histogram.add(std::span(chunk.high).first(static_cast<std::size_t>(n)));
  }
}

}  // namespace

// A row without softmax is kept without it.
std::size_t StatsObserver::record_size(Wanted wanted) {
  static_assert(offsetof(StatsRow, softmax) == 2 * sizeof(Moments));
  return wanted.softmax ? sizeof(StatsRow) : offsetof(StatsRow, softmax);
}

StatsObserver::StatsObserver(Plan plan, Wanted wanted)
    : plan_(std::move(plan)),
      wanted_(wanted),
      rows_(std::make_shared<Spool>(record_size(wanted))) {}

void StatsObserver::count_elements(const RowBlock& block) const {
  std::unique_ptr<ElementHistograms> histograms;
  {
    const std::lock_guard lock(mutex_);
    if (!elements_.empty()) {
      histograms = std::move(elements_.back());
      elements_.pop_back();
    }
  }
  if (!histograms) histograms = std::make_unique<ElementHistograms>();
  add_elements(block.x, histograms->input);
  add_elements(output_rows(block), histograms->output);
  const std::lock_guard lock(mutex_);
  elements_.push_back(std::move(histograms));
}

BlockFindings StatsObserver::examine(const RowBlock& block) const {
  const auto rows = static_cast<std::size_t>(block.x.rows);
  std::vector<Moments> input(rows);
  std::vector<Moments> output(rows);
  std::vector<Moments> softmax_moments(rows);
  measure_moments(block.x, plan_.formula.ddof, input.data());
  measure_moments(output_rows(block), plan_.formula.ddof, output.data());
  if (wanted_.softmax) {
    RowsIn y = output_rows(block);
    std::vector<std::byte> result(rows * static_cast<std::size_t>(y.row_length) *
                                  item_size(y.dtype));
    softmax(block.x, {result.data(), y.dtype});
    y.data = result.data();
    measure_moments(y, plan_.formula.ddof, softmax_moments.data());
  }
  if (wanted_.histograms) count_elements(block);
  std::vector<StatsRow> findings;
  for (std::size_t r = 0; r < rows; ++r) {
    findings.push_back({input[r], output[r], softmax_moments[r]});
  }
  return findings;
}

void StatsObserver::see(const RowBlock&, const BlockFindings& findings) {
  for (const StatsRow& row : std::any_cast<const std::vector<StatsRow>&>(findings)) {
    rows_->append(std::as_bytes(std::span(&row, 1)).first(record_size(wanted_)));
    if (wanted_.histograms) {
      row_means_.add(row.input.mean);
      row_variances_.add(row.input.variance);
    }
  }
}

Stats StatsObserver::stats(const TensorInfo& x) const {
  const auto each_row = [rows = rows_](const std::function<void(const StatsRow&)>& see) {
    rows->replay([&](std::span<const std::byte> record) {
      StatsRow row;
      std::memcpy(&row, record.data(), record.size());
      see(row);
    });
  };
  const auto columns = stats_columns(wanted_.softmax);
  Stats result;
  result.x = x;
  result.axes = plan_.axes;
  result.formula = plan_.formula;
  result.out = plan_.out;
  result.columns = columns;
  result.summary = summarize(columns, each_row);
  result.each_row = each_row;
  if (wanted_.histograms) {
    result.histograms.emplace();
    result.histograms->row_means = row_means_;
    result.histograms->row_variances = row_variances_;
    for (const auto& elements : elements_) {
      result.histograms->input.merge(elements->input);
      result.histograms->output.merge(elements->output);
    }
  }
  return result;
}

}  // namespace lnorm
