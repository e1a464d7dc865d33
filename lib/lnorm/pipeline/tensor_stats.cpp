#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/chunk.hpp"
#include "lnorm/io/spool.hpp"
#include "lnorm/pipeline/stats.hpp"

namespace lnorm {

namespace {

// What is kept of every row whose elements are all finite: mean and variance.
using RowRecord = std::array<double, 2>;

// So many records are held, those of most tensors; of more, all are on disk.
constexpr std::int64_t kMaxHeld = 1 << 19;

// What is found out from a block alone.
struct MeasuredBlock {
  std::vector<Moments> moments;
  std::vector<RowRecord> records;
  std::optional<LargestElement> largest;
  std::int64_t first_non_finite = -1;  // element, of the first row that has one
};

void improve(std::optional<LargestElement>& largest, const LargestElement& other) {
  if (!largest || largest->is_beaten_by(other)) largest = other;
}

// The greatest |x| of a row as a double; infinite where infinities hide it, negative where there is none.
double greatest_of(const Moments& row) {
  return std::isnan(row.min) ? -1 : std::max(std::fabs(row.min), std::fabs(row.max));
}

// What is found of the finite elements of a row that are kept, or of all. The position is that in the row.
std::optional<LargestElement> largest_of(const RowsIn& row, const std::vector<char>& kept) {
  std::optional<LargestElement> largest;
  for_each_element(row, [&](std::int64_t i, Number value) {
    const bool is_kept = kept.empty() || kept[static_cast<std::size_t>(i)] != 0;
    if (is_kept && std::isfinite(value.high)) improve(largest, {value, i});
  });
  return largest;
}

// Adds an element whose |x| is known, and a double.
std::optional<LargestElement> first_of_size(const RowsIn& row, double size) {
  Chunk chunk;
  for (std::int64_t start = 0; start < row.row_length; start += kChunk) {
    const std::int64_t n = load_chunk(row, start, chunk);
    const double* const found =
        std::find_if(chunk.high, chunk.high + n, [&](double x) { return std::fabs(x) == size; });
    if (found != chunk.high + n) return LargestElement{{*found}, start + (found - chunk.high)};
  }
  return {};
}

// Finds the largest elements of blocks by the moments of their rows: few rows are looked through.
class LargestFinder {
 public:
  // mask: null if there is none.
  LargestFinder(const Plan& plan, const RowMask* mask)
      : plan_(plan),
        mask_(mask),
        is_exact_(!has_low(plan.in)),
        first_row_wins_(is_exact_ && plan.out_view.is_contiguous()) {}

  // Nothing if an earlier block has a larger one.
  std::optional<LargestElement> find(const RowBlock& block,
                                     std::span<const Moments> moments) const {
    const double least = least_;
    double greatest = -1;
    bool has_infinity = false;
    for (const Moments& row : moments) {
      const double of_row = greatest_of(row);
      has_infinity = has_infinity || std::isinf(of_row);
      if (!std::isinf(of_row)) greatest = std::max(greatest, of_row);
    }
    const bool can_win = greatest >= 0 && (first_row_wins_ ? greatest > least : greatest >= least);
    std::optional<LargestElement> largest;
    if (!can_win && !has_infinity) return largest;
    for (std::int64_t r = 0; r < block.x.rows; ++r) {
      const double of_row = greatest_of(moments[static_cast<std::size_t>(r)]);
      if (!std::isinf(of_row) && !(can_win && of_row == greatest)) continue;
      const std::int64_t row = block.first_row + r;
      // The first in C order wins among equals.
      if (largest && is_exact_ && of_row == std::fabs(largest->value.high) &&
          position(row, 0) > largest->position) {
        continue;
      }
      const auto found =
          mask_ == nullptr && is_exact_ && !std::isinf(of_row)
              ? first_of_size(row_of(block.x, r), of_row)
              : largest_of(row_of(block.x, r), kept_of(mask_, row, block.x.row_length));
      if (found) improve(largest, {found->value, position(row, found->position)});
    }
    return largest;
  }

  // Blocks leave in order.
  void leave(const std::optional<LargestElement>& largest) {
    if (!largest) return;
    improve(largest_, *largest);
    least_ = std::fabs(largest_->value.high);
  }

  const std::optional<LargestElement>& largest() const noexcept { return largest_; }

 private:
  std::int64_t position(std::int64_t row, std::int64_t element) const {
    return plan_.out_view.runs({row, 1, element, 1}).front().position;
  }

  const Plan& plan_;
  const RowMask* mask_;
  bool is_exact_;  // elements are doubles
  bool first_row_wins_;
  std::optional<LargestElement> largest_;
  std::atomic<double> least_ = -1;  // |x| of the largest so far
};

// Measures the rows that go through the loop.
class MomentsObserver final : public RowObserver {
 public:
  MomentsObserver(const Plan& plan, const TensorInfo& x, const RowMask* mask)
      : mask_(mask),
        finder_(plan, mask),
        records_(sizeof(RowRecord),
                 static_cast<std::size_t>(std::min(plan.rows, kMaxHeld)) * sizeof(RowRecord)) {
    stats_.x = whole_of(x);
    stats_.slice = x.slice;
    stats_.axes = x.slice ? x.slice->axes : plan.axes;
    stats_.rows = plan.rows;
    stats_.row_length = plan.row_length;
    stats_.ddof = plan.formula.ddof;
  }

  BlockFindings examine(const RowBlock& block) const override {
    MeasuredBlock found;
    found.moments.resize(static_cast<std::size_t>(block.x.rows));
    measure_left(mask_, block.x, stats_.ddof, found.moments.data());
    for (const Moments& row : found.moments) {
      if (row.non_finite == 0) found.records.push_back({row.mean, row.variance});
    }
    const auto broken = std::find_if(found.moments.begin(), found.moments.end(),
                                     [](const Moments& row) { return row.non_finite > 0; });
    if (broken != found.moments.end()) {
      const std::int64_t row = broken - found.moments.begin();
      found.first_non_finite = first_non_finite(
          row_of(block.x, row), kept_of(mask_, block.first_row + row, block.x.row_length));
    }
    found.largest = finder_.find(block, found.moments);
    return found;
  }

  void see(const RowBlock& block, const BlockFindings& findings) override {
    const auto& found = std::any_cast<const MeasuredBlock&>(findings);
    std::int64_t row = block.first_row;
    for (const Moments& moments : found.moments) {
      stats_.non_finite.add(row++, moments.non_finite, found.first_non_finite);
    }
    for (const auto& [mean, variance] : found.records) {
      stats_.means.add(mean);
      stats_.variances.add(variance);
    }
    records_.append(std::as_bytes(std::span(found.records)));
    finder_.leave(found.largest);
  }

  void finish() override { stats_.largest = finder_.largest(); }
  bool takes_parts() const override { return true; }

  void merge(Ranks& ranks) override {
    all_reduce_value(ranks, stats_, [&](const TensorStats& next) {
      stats_.non_finite.append(0, next.non_finite);
      if (next.largest) improve(stats_.largest, *next.largest);
      stats_.means.append(next.means);
      stats_.variances.append(next.variances);
    });
    const auto add_up_counts = [&](std::span<std::int64_t> counts) { add_up(ranks, counts); };
    std::array columns{stats_.means, stats_.variances};
    find_medians(
        columns, [&](std::int64_t step, const SeeValues& see) { each_value(step, see); },
        ranks.count() > 1 ? AddUp(add_up_counts) : AddUp());
    stats_.means = columns[0];
    stats_.variances = columns[1];
  }

  // Follows the loop.
  TensorStats stats() const {
    TensorStats stats = stats_;
    if (stats.slice && stats.largest) {
      stats.largest->position = position_in_whole(*stats.slice, stats.largest->position);
    }
    return stats;
  }

 private:
  // Every number of this rank, some records at a time.
  void each_value(std::int64_t step, const SeeValues& see) {
    records_.replay_each(step, [&](std::span<const std::byte> bytes) {
      std::vector<RowRecord> some(bytes.size() / sizeof(RowRecord));
      std::memcpy(some.data(), bytes.data(), bytes.size());
      std::vector<double> values;
      values.reserve(some.size());
      for (std::size_t column = 0; column < std::tuple_size_v<RowRecord>; ++column) {
        values.clear();
        for (const RowRecord& record : some) {
          if (!std::isnan(record[column])) values.push_back(record[column]);
        }
        see(column, values);
      }
    });
  }

  const RowMask* mask_;
  LargestFinder finder_;
  Spool records_;
  TensorStats stats_;
};

}  // namespace

TensorStats measure_tensor(TensorSource& source, const Plan& plan, const RunOptions& options,
                           const std::optional<RowMask>& mask) {
  MomentsObserver observer(plan, source.info(), mask ? &*mask : nullptr);
  RowObserver* const observers[] = {&observer};
  run(source, plan, {}, observers, nullptr, options);
  return observer.stats();
}

}  // namespace lnorm
