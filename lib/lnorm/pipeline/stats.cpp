#include "lnorm/pipeline/stats.hpp"

#include <algorithm>
#include <utility>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/slice.hpp"
#include "lnorm/kernel/moments.hpp"
#include "lnorm/kernel/softmax.hpp"

namespace lnorm {

namespace {

// found: of the rows.
void add_elements(const RowsIn& rows, std::span<const Moments> found, Histogram& histogram) {
  if (rows.rows == 0 || rows.row_length == 0) return;
  const std::int64_t elements = rows.rows * rows.row_length;
  const auto size = static_cast<std::int64_t>(item_size(rows.dtype));
  double min = found[0].min;
  double max = found[0].max;
  std::int64_t non_finite = 0;
  for (const Moments& row : found) {
    min = std::min(min, row.min);
    max = std::max(max, row.max);
    non_finite += row.non_finite;
  }
  const bool is_native = rows.byte_order == std::endian::native;
  if (rows.dtype == DType::float32 && is_native && non_finite == 0) {
    const std::span all(rows.data, static_cast<std::size_t>(elements * size));
    return histogram.add_finite_floats(all, min, max);
  }
  Chunk chunk;
  for (std::int64_t start = 0; start < elements; start += kChunk) {
    const std::int64_t n = std::min(kChunk, elements - start);
    load(rows.data + start * size, rows.dtype, rows.byte_order, n, chunk);
    const auto values = std::span(chunk.high).first(static_cast<std::size_t>(n));
    non_finite == 0 ? histogram.add_finite(values, min, max) : histogram.add(values);
  }
}

}  // namespace

StatsObserver::StatsObserver(Plan plan, Wanted wanted)
    : plan_(std::move(plan)), wanted_(wanted), rows_(std::make_shared<StatsRows>(wanted.softmax)) {}

void StatsObserver::count_elements(const RowBlock& block, const StatsBlock& rows) const {
  std::unique_ptr<ElementHistograms> histograms;
  {
    const std::lock_guard lock(mutex_);
    if (!elements_.empty()) {
      histograms = std::move(elements_.back());
      elements_.pop_back();
    }
  }
  if (!histograms) histograms = std::make_unique<ElementHistograms>();
  add_elements(block.x, rows.input, histograms->input);
  add_elements(output_rows(block), rows.output, histograms->output);
  const std::lock_guard lock(mutex_);
  elements_.push_back(std::move(histograms));
}

BlockFindings StatsObserver::examine(const RowBlock& block) const {
  const auto rows = static_cast<std::size_t>(block.x.rows);
  Findings findings;
  StatsBlock& found = findings.rows;
  found.input.resize(rows);
  found.output.resize(rows);
  measure_moments(block.x, plan_.formula.ddof, found.input.data());
  measure_moments(output_rows(block), plan_.formula.ddof, found.output.data());
  if (wanted_.softmax) {
    RowsIn y = output_rows(block);
    std::vector<std::byte> result(rows * static_cast<std::size_t>(y.row_length) *
                                  item_size(y.dtype));
    softmax(block.x, {result.data(), y.dtype});
    y.data = result.data();
    found.softmax.resize(rows);
    measure_moments(y, plan_.formula.ddof, found.softmax.data());
  }
  if (wanted_.histograms) count_elements(block, found);
  findings.kept = rows_->part(found);
  return findings;
}

void StatsObserver::see(const RowBlock&, const BlockFindings& found) {
  const auto& findings = std::any_cast<const Findings&>(found);
  rows_->add(findings.kept);
  if (!wanted_.histograms) return;
  std::vector<double> numbers;
  numbers.reserve(findings.rows.rows());
  for (const auto& [number, histogram] :
       {std::pair(&Moments::mean, &row_means_), std::pair(&Moments::variance, &row_variances_)}) {
    numbers.clear();
    for (const Moments& row : findings.rows.input) numbers.push_back(row.*number);
    histogram->add(numbers);
  }
}

StatsObserver::ElementHistograms StatsObserver::all_elements() const {
  ElementHistograms all;
  for (const auto& elements : elements_) {
    all.input.merge(elements->input);
    all.output.merge(elements->output);
  }
  return all;
}

void StatsObserver::merge(Ranks& ranks) {
  ranks_ = &ranks;
  rows_->merge(ranks);
  if (!wanted_.histograms) return;
  elements_.push_back(std::make_unique<ElementHistograms>());
  reduce(
      ranks,
      [&] {
        ElementHistograms elements = all_elements();
        return serialize(elements, row_means_, row_variances_);
      },
      [&](const std::string& bytes) {
        ElementHistograms elements;
        Histogram means;
        Histogram variances;
        deserialize(bytes, elements, means, variances);
        elements_.back()->input.merge(elements.input);
        elements_.back()->output.merge(elements.output);
        row_means_.merge(means);
        row_variances_.merge(variances);
      });
}

void StatsObserver::report(const std::function<void()>& write) const {
  if (!ranks_->is_first()) return rows_->provide();
  write();
  rows_->end_providing();
}

Stats StatsObserver::stats(const TensorInfo& x) const {
  Stats result;
  result.x = whole_of(x);
  result.axes = x.slice ? x.slice->axes : plan_.axes;
  result.slice = x.slice;
  result.formula = plan_.formula;
  result.out = plan_.out;
  result.columns = stats_columns(wanted_.softmax);
  result.summary = rows_->summary();
  result.each_row = [rows = rows_](std::int64_t first, std::int64_t count, const auto& see) {
    rows->each_row(first, count, see);
  };
  if (wanted_.histograms) {
    result.histograms.emplace();
    result.histograms->row_means = row_means_;
    result.histograms->row_variances = row_variances_;
    ElementHistograms elements = all_elements();
    result.histograms->input = std::move(elements.input);
    result.histograms->output = std::move(elements.output);
  }
  return result;
}

}  // namespace lnorm
