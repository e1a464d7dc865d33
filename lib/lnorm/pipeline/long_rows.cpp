#include "lnorm/pipeline/long_rows.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/kernel/exact_row.hpp"
#include "lnorm/kernel/two_pass.hpp"

namespace lnorm {

namespace {

// One row, which lies in the source.
class LongRow {
 public:
  LongRow(const TensorSource& source, const Plan& plan, const Affine& affine, std::int64_t row,
          const RunOptions& options)
      : source_(source),
        plan_(plan),
        affine_(affine),
        row_(row),
        segments_((plan.row_length + kSegment - 1) / kSegment),
        progress_(options.progress),
        crew_(options.threads, segments_),
        slots_(crew_.slots()) {}

  void normalize(const Kernel& kernel, const RowStats& stats, TensorSink& sink) {
    bool written = false;
    if (kernel.passes != nullptr) {
      const Passes& passes = *kernel.passes;
      if (is_narrow(plan_.in, plan_.out)) written = normalize_narrow(passes, sink);
      if (written && stats.mean == nullptr) return;
      const auto statistics = find_statistics<DoubleDouble>(passes, passes.wide_sums);
      if (statistics) {
        if (stats.mean) *stats.mean = (DoubleDouble{statistics->center} + statistics->shift).high;
        if (stats.rstd) *stats.rstd = statistics->rstd.high;
        if (written) return;
        return write(sink, [&](const RowsIn& part, std::int64_t offset, const RowsOut& y) {
          passes.wide_write(part, *statistics, affine_, offset, y);
        });
      }
    }
    const ExactRow exact(sum<ExactSums>(exact_sums), plan_.row_length, plan_.formula);
    if (stats.mean) *stats.mean = exact.mean();
    if (stats.rstd) *stats.rstd = exact.rstd();
    if (written) return;
    write(sink, [&](const RowsIn& part, std::int64_t offset, const RowsOut& y) {
      exact.write(part, affine_, offset, y);
    });
  }

 private:
  struct Slot {
    std::vector<std::byte> in;
    std::vector<std::byte> out;
    std::string text;  // if that is what out is encoded as
    std::span<const std::byte> encoded;
  };

  RowsIn read(std::int64_t first, std::int64_t count, std::vector<std::byte>& to) const {
    const auto size = static_cast<std::int64_t>(item_size(plan_.in));
    to.resize(static_cast<std::size_t>(count * size));
    source_.read_at((row_ * plan_.row_length + first) * size, to);
    return {to.data(), plan_.in, source_.info().byte_order, 1, count};
  }

  RowsIn read_segment(std::int64_t segment, std::vector<std::byte>& to) const {
    const std::int64_t first = segment * kSegment;
    return read(first, std::min(kSegment, plan_.row_length - first), to);
  }

  RowsOut room_for(const RowsIn& part, std::vector<std::byte>& out) const {
    out.resize(static_cast<std::size_t>(part.row_length) * item_size(plan_.out));
    return {out.data(), plan_.out};
  }

  // Elements of the row that may be told as done: half of them for each of the two passes.
  void tell(std::int64_t halves) {
    told_ = std::max(told_, halves / 2);
    if (progress_) progress_(row_ * plan_.row_length + told_);
  }

  std::int64_t elements_to(std::int64_t segment) const {
    return std::min(plan_.row_length, (segment + 1) * kSegment);
  }

  // The sum of what sum_part says of every segment.
  template <class Total, class SumPart>
  Total sum(SumPart sum_part) {
    Total total{};
    std::vector<Total> parts(slots_.size());
    crew_.run(
        segments_, [](std::int64_t, std::size_t) {},
        [&](std::int64_t segment, std::size_t s) {
          parts[s] = sum_part(read_segment(segment, slots_[s].in));
        },
        [&](std::int64_t segment, std::size_t s) {
          total = total + parts[s];
          tell(elements_to(segment));
        });
    return total;
  }

  template <class T, class SumPart>
  std::optional<Statistics<T>> find_statistics(const Passes& passes, SumPart sum_part) {
    double center = 0;
    if (!plan_.formula.rms) {
      std::vector<std::byte> sample;
      const std::int64_t n = plan_.row_length;
      center = passes.mean(read(sample_start(n), sample_length(n), sample));
    }
    Centering<T> centering(center, plan_.row_length, plan_.formula);
    while (centering.wants_sums()) {
      centering.take(
          sum<Sums>([&](const RowsIn& part) { return sum_part(part, centering.center()); }));
    }
    return centering.statistics();
  }

  // Calls write_part(part, offset, y) for every segment.
  template <class WritePart>
  void write(TensorSink& sink, WritePart write_part) {
    crew_.run(
        segments_, [](std::int64_t, std::size_t) {},
        [&](std::int64_t segment, std::size_t s) {
          Slot& slot = slots_[s];
          const RowsIn part = read_segment(segment, slot.in);
          const std::int64_t offset = segment * kSegment;
          write_part(part, offset, room_for(part, slot.out));
          const std::int64_t position = row_ * plan_.row_length + offset;
          if (sink.has_positions()) {
            sink.write_at(position * static_cast<std::int64_t>(item_size(plan_.out)), slot.out);
          } else {
            slot.encoded = sink.encode(position, slot.out, slot.text);
          }
        },
        [&](std::int64_t segment, std::size_t s) {
          if (!sink.has_positions()) sink.write(slots_[s].encoded);
          tell(plan_.row_length + elements_to(segment));
        });
  }

  // False, and nothing written, if it has to be done in wide.
  bool normalize_narrow(const Passes& passes, TensorSink& sink) {
    const auto statistics = find_statistics<double>(passes, passes.narrow_sums);
    if (!statistics) return false;
    if (!affine_.bias.empty() && bias_cancels_row(passes, *statistics)) return false;
    write(sink, [&](const RowsIn& part, std::int64_t offset, const RowsOut& y) {
      passes.narrow_write(part, *statistics, affine_, offset, y);
    });
    return true;
  }

  // Looks at segments until one has a result that is large enough, which is the first one as a rule.
  bool bias_cancels_row(const Passes& passes, const Statistics<double>& statistics) {
    Slot& slot = slots_.front();
    double largest = 0;
    for (std::int64_t segment = 0; segment < segments_; ++segment) {
      const RowsIn part = read_segment(segment, slot.in);
      largest = std::max(largest, passes.narrow_write(part, statistics, affine_, segment * kSegment,
                                                      room_for(part, slot.out)));
      if (!bias_cancels(largest, affine_)) return false;
    }
    return true;
  }

  const TensorSource& source_;
  const Plan& plan_;
  const Affine& affine_;
  std::int64_t row_;
  std::int64_t segments_;
  const Progress& progress_;
  Crew crew_;
  std::vector<Slot> slots_;
  std::int64_t told_ = 0;
};

}  // namespace

void run_long_rows(TensorSource& source, const Plan& plan, const Kernel& kernel,
                   const Affine& affine, std::span<RowObserver* const> observers, TensorSink& sink,
                   const RunOptions& options) {
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    double mean = 0;
    double rstd = 0;
    LongRow(source, plan, affine, row, options)
        .normalize(kernel, plan.stats ? RowStats{&mean, &rstd} : RowStats{}, sink);
    const RowBlock block{row, {}, {}, {&mean, plan.stats ? 1u : 0u}, {&rstd, plan.stats ? 1u : 0u}};
    for (RowObserver* observer : observers) observer->see(block, nullptr);
  }
  source.finish();
  for (RowObserver* observer : observers) observer->finish();
  sink.finish();
}

}  // namespace lnorm
