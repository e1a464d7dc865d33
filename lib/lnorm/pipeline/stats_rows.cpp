#include "lnorm/pipeline/stats_rows.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

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

// What rank 0 asks another one for; of no rows: nothing more.
struct RowsWanted {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Of one answer.
constexpr std::int64_t kMaxRowsSent = 65536;

}  // namespace

StatsRows::StatsRows(bool softmax)
    : columns_(stats_columns(softmax)),
      kept_(kept_columns(softmax)),
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
  all_reduce(
      ranks, [&] { return serialize(summary_); },
      [&](const std::string& bytes) {
        StatsSummary next;
        deserialize(bytes, next);
        summary_.append(next);
      },
      [&](const std::string& bytes) { deserialize(bytes, summary_); });
}

void StatsRows::provide() const {
  for (;;) {
    RowsWanted wanted;
    deserialize(ranks_->receive(0), wanted);
    if (wanted.count == 0) return;
    ranks_->send(0, records_of(wanted.first, wanted.count));
  }
}

void StatsRows::end_providing() const {
  RowsWanted none;
  for (int rank = 1; rank < ranks_->count(); ++rank) ranks_->send(rank, serialize(none));
}

std::string StatsRows::records_of(std::int64_t first, std::int64_t count) const {
  std::string bytes;
  records_.replay(first, count, [&](std::span<const std::byte> records) {
    bytes.append(reinterpret_cast<const char*>(records.data()), records.size());
  });
  return bytes;
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

void StatsRows::each_value(std::int64_t step, const SeeValues& see) const {
  const std::size_t size = kept_.size();
  std::vector<double> values;
  records_.replay_each(step, [&](std::span<const std::byte> records) {
    const std::size_t rows = records.size() / (size * sizeof(double));
    values.resize(rows);
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      std::size_t count = 0;
      for (std::size_t row = 0; row < rows; ++row) {
        const double value = number(records, row * size + column);
        const bool is_finite = non_finite_of(number(records, row * size)) == 0;  // of the input
        values[count] = value;
        count += static_cast<std::size_t>(is_finite && !std::isnan(value));
      }
      see(column, std::span(values).first(count));
    }
  });
}

StatsSummary StatsRows::summary() const {
  StatsSummary summary = summary_;
  find_medians(
      summary.columns, [&](std::int64_t step, const SeeValues& see) { each_value(step, see); },
      ranks_->count() > 1 ? [this](std::span<std::int64_t> counts) { add_up(*ranks_, counts); }
                          : AddUp());
  return summary;
}

}  // namespace lnorm
