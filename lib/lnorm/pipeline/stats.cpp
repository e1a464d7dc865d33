#include "lnorm/pipeline/stats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/chunk.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/moments.hpp"
#include "lnorm/kernel/softmax.hpp"
#include "lnorm/pipeline/executor.hpp"

namespace lnorm {

namespace {

// A record has the numbers of kept columns. A row with a NaN or an infinity has no mean, so that its place has room for their
// count: in the significand of a NaN.
constexpr std::uint64_t kNanBits = 0x7ff8'0000'0000'0000;
constexpr std::uint64_t kCountBits = (std::uint64_t{1} << 51) - 1;

double mean_or_count(const Moments& moments) {
  if (moments.non_finite == 0) return moments.mean;
  return std::bit_cast<double>(kNanBits | static_cast<std::uint64_t>(moments.non_finite));
}

// A row without elements has no mean either, and none that are not finite.
std::int64_t non_finite_of(double mean) {
  if (!std::isnan(mean)) return 0;
  return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(mean) & kCountBits);
}

double number(std::span<const std::byte> records, std::size_t i) {
  double value;
  std::memcpy(&value, records.data() + i * sizeof value, sizeof value);
  return value;
}

// In bytes: a million rows without softmax.
constexpr std::size_t kMaxInMemory = std::size_t{48} << 20;

// Their medians are worth several threads.
constexpr std::int64_t kManyRows = 65536;

// What rank 0 asks another one for; of no rows: nothing more.
struct RowsWanted {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// The numbers of one answer.
constexpr std::int64_t kMaxRowsSent = 65536;

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

// Calls see for each row with the elements that the mask leaves, packed.
template <class See>
void for_each_left(const RowMask& mask, const RowsIn& x, See see) {
  const std::size_t size = item_size(x.dtype);
  std::vector<std::byte> left(static_cast<std::size_t>(x.row_length) * size);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const std::byte* from = row_of(x, r).data;
    std::byte* to = left.data();
    for (const char is_left : kept_of(&mask, x.first_row + r, x.row_length)) {
      if (is_left != 0) to = std::copy_n(from, size, to);
      from += size;
    }
    const std::int64_t count = (to - left.data()) / static_cast<std::int64_t>(size);
    see(r, RowsIn{left.data(), x.dtype, x.byte_order, 1, count});
  }
}

}  // namespace

std::int64_t first_non_finite(const RowsIn& row, std::span<const char> kept) {
  Chunk chunk;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = load_chunk(row, start, chunk);
    for (std::int64_t i = 0; i < n; ++i) {
      const bool is_left = kept.empty() || kept[static_cast<std::size_t>(start + i)] != 0;
      if (is_left && !std::isfinite(chunk.high[i])) return start + i;
    }
  }
  return -1;
}

void measure_left(const RowMask* mask, const RowsIn& x, std::int64_t ddof, Moments* moments) {
  if (mask == nullptr) return measure_moments(x, ddof, moments);
  for_each_left(*mask, x, [&](std::int64_t r, const RowsIn& left) {
    const bool has_variance = ddof < left.row_length;
    measure_moments(left, has_variance ? ddof : 0, moments + r);
    if (!has_variance) moments[r].variance = kNan;
  });
}

StatsRows::StatsRows(std::span<const StatsColumn> columns)
    : columns_(columns),
      kept_(kept_columns(columns)),
      records_(kept_.size() * sizeof(double), kMaxInMemory),
      summary_(columns_) {}

StatsRows::Part StatsRows::part(const StatsBlock& rows) const {
  Part part{std::vector<double>(rows.rows() * kept_.size()), StatsSummary(columns_)};
  part.summary.add(columns_, rows);
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const StatsColumn& column = kept_[i];
    const bool is_mean = column.value == &Moments::mean;
    double* to = part.records.data() + i;
    for (const Moments& moments : rows.*column.block) {
      *to = is_mean ? mean_or_count(moments) : moments.*column.value;
      to += kept_.size();
    }
  }
  return part;
}

void StatsRows::add(const Part& part) {
  records_.append(std::as_bytes(std::span(part.records)));
  summary_.append(part.summary);
}

void StatsRows::merge(Ranks& ranks) {
  ranks_ = &ranks;
  ends_.assign(static_cast<std::size_t>(ranks.count()), 0);
  ends_[static_cast<std::size_t>(ranks.rank())] = summary_.rows;
  add_up(ranks, ends_);
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  all_reduce_value(ranks, summary_, [&](const StatsSummary& next) { summary_.append(next); });
}

void StatsRows::provide() const {
  for (;;) {
    RowsWanted wanted;
    deserialize(ranks_->receive(0), wanted);
    if (wanted.count == 0) return;
    std::string records;
    records_.replay(wanted.first, wanted.count, [&](std::span<const std::byte> some) {
      records.append(reinterpret_cast<const char*>(some.data()), some.size());
    });
    ranks_->send(0, std::move(records));
  }
}

void StatsRows::end_providing() const {
  RowsWanted none;
  for (int rank = 1; rank < ranks_->count(); ++rank) ranks_->send(rank, serialize(none));
}

void StatsRows::each_row(std::int64_t first, std::int64_t count,
                         const std::function<void(const StatsRow&)>& see) const {
  const auto see_all = [&](std::span<const std::byte> records) {
    const std::size_t size = kept_.size() * sizeof(double);
    for (; !records.empty(); records = records.subspan(size)) {
      StatsRow row;
      for (std::size_t i = 0; i < kept_.size(); ++i) {
        row.*kept_[i].moments.*kept_[i].value = number(records, i);
      }
      for (Moments StatsRow::*moments : {&StatsRow::input, &StatsRow::output}) {
        (row.*moments).non_finite = non_finite_of((row.*moments).mean);
      }
      see(row);
    }
  };
  const std::int64_t here = ends_.empty() ? first + count : std::min(ends_.front(), first + count);
  if (first < here) records_.replay(first, here - first, see_all);
  for (std::size_t rank = 1; rank < ends_.size(); ++rank) {
    const std::int64_t before = ends_[rank - 1];
    const std::int64_t end = std::min(ends_[rank], first + count);
    for (std::int64_t next = std::max(before, first); next < end;) {
      RowsWanted wanted{next - before, std::min(end - next, kMaxRowsSent)};
      ranks_->send(static_cast<int>(rank), serialize(wanted));
      const std::string records = ranks_->receive(static_cast<int>(rank));
      see_all(std::as_bytes(std::span(records)));
      next += wanted.count;
    }
  }
}

void StatsRows::each_value(std::size_t first, std::size_t count, std::int64_t step,
                           const SeeValues& see) const {
  const std::size_t size = kept_.size();
  const bool all_finite = summary_.input.rows == 0;
  std::vector<double> values;
  records_.replay_each(step, [&](std::span<const std::byte> records) {
    const std::size_t rows = records.size() / (size * sizeof(double));
    values.resize(rows);
    for (std::size_t column = 0; column < count; ++column) {
      std::size_t found = 0;
      for (std::size_t row = 0; row < rows; ++row) {
        const double value = number(records, row * size + first + column);
        const bool is_finite =  // the input
            all_finite || non_finite_of(number(records, row * size)) == 0;
        values[found] = value;
        found += static_cast<std::size_t>(is_finite && !std::isnan(value));
      }
      see(column, std::span(values).first(found));
    }
  });
}

StatsSummary StatsRows::summary(int threads) const {
  StatsSummary summary = summary_;
  const std::span<ColumnSummary> columns(summary.columns);
  const bool is_alone = ranks_->count() == 1;
  const AddUp add_up_ranks = [this](std::span<std::int64_t> counts) { add_up(*ranks_, counts); };
  const bool are_divided = is_alone && summary.rows >= kManyRows;
  const std::int64_t parts = are_divided ? Executor(threads, std::ssize(columns)).threads() : 1;
  in_parallel(threads)(parts, [&](std::int64_t part) {
    const auto first = static_cast<std::size_t>(std::ssize(columns) * part / parts);
    const auto end = static_cast<std::size_t>(std::ssize(columns) * (part + 1) / parts);
    find_medians(
        columns.subspan(first, end - first),
        [&](std::int64_t step, const SeeValues& see) { each_value(first, end - first, step, see); },
        is_alone ? AddUp() : add_up_ranks, kHeldValues / parts);
  });
  return summary;
}

StatsObserver::StatsObserver(Plan plan, Wanted wanted)
    : plan_(std::move(plan)),
      wanted_(std::move(wanted)),
      columns_(wanted_.mask ? input_columns() : stats_columns(wanted_.softmax)),
      rows_(std::make_shared<StatsRows>(columns_)) {}

void StatsObserver::count_elements(const RowBlock& block, const StatsBlock& rows) const {
  auto histograms = elements_.take([] { return std::make_unique<StatsHistograms>(); });
  if (wanted_.mask) {
    for_each_left(*wanted_.mask, block.x, [&](std::int64_t r, const RowsIn& left) {
      add_elements(left, std::span(rows.input).subspan(static_cast<std::size_t>(r), 1),
                   histograms->input);
    });
  } else {
    add_elements(block.x, rows.input, histograms->input);
    add_elements(output_rows(block), rows.output, histograms->output);
  }
  elements_.give(std::move(histograms));
}

BlockFindings StatsObserver::examine(const RowBlock& block) const {
  const auto rows = static_cast<std::size_t>(block.x.rows);
  Findings findings;
  StatsBlock& found = findings.rows;
  found.input.resize(rows);
  found.output.resize(rows);
  const RowMask* const mask = wanted_.mask ? &*wanted_.mask : nullptr;
  measure_left(mask, block.x, plan_.formula.ddof, found.input.data());
  if (mask == nullptr) measure_moments(output_rows(block), plan_.formula.ddof, found.output.data());
  if (wanted_.softmax) {
    RowsIn y = output_rows(block);
    const std::size_t size = rows * static_cast<std::size_t>(y.row_length) * item_size(y.dtype);
    const auto result = std::make_unique_for_overwrite<std::byte[]>(size);
    softmax(block.x, {result.get(), y.dtype});
    y.data = result.get();
    found.softmax.resize(rows);
    measure_moments(y, plan_.formula.ddof, found.softmax.data());
  }
  if (wanted_.histograms) count_elements(block, found);
  findings.kept = rows_->part(found);
  for (const auto& [summary, elements] :
       {std::pair(&findings.kept.summary.input, block.x),
        std::pair(&findings.kept.summary.output, output_rows(block))}) {
    if (summary->rows == 0) continue;
    const std::int64_t row = summary->first_row;
    summary->first_element = first_non_finite(
        row_of(elements, row), kept_of(mask, block.first_row + row, elements.row_length));
  }
  return findings;
}

void StatsObserver::see(const RowBlock&, const BlockFindings& found) {
  const auto& findings = std::any_cast<const Findings&>(found);
  rows_->add(findings.kept);
  if (!wanted_.histograms) return;
  std::vector<double> numbers;
  numbers.reserve(findings.rows.rows());
  for (const auto& [number, histogram] :
       {std::pair(&Moments::mean, &histograms_.row_means),
        std::pair(&Moments::variance, &histograms_.row_variances)}) {
    numbers.clear();
    for (const Moments& row : findings.rows.input) numbers.push_back(row.*number);
    histogram->add(numbers);
  }
}

void StatsObserver::finish() {
  for (const auto& elements : elements_.idle()) histograms_.merge(*elements);
}

void StatsObserver::merge(Ranks& ranks) {
  ranks_ = &ranks;
  rows_->merge(ranks);
  if (!wanted_.histograms) return;
  reduce_value(ranks, histograms_, [&](const StatsHistograms& next) { histograms_.merge(next); });
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
  result.columns = columns_;
  result.summary = rows_->summary(wanted_.threads);
  result.each_row = [rows = rows_](std::int64_t first, std::int64_t count, const auto& see) {
    rows->each_row(first, count, see);
  };
  result.in_parallel = in_parallel(wanted_.threads);
  if (wanted_.histograms) result.histograms = histograms_;
  return result;
}

}  // namespace lnorm
