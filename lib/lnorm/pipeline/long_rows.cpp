#include "lnorm/pipeline/long_rows.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/kernel/exact_row.hpp"
#include "lnorm/kernel/two_pass.hpp"
#include "lnorm/layout/row_sink.hpp"
#include "lnorm/layout/row_source.hpp"

namespace lnorm {

namespace {

// What is known of a row so far. It goes through by the first of the three ways that will do.
struct Row {
  std::optional<Statistics<double>> narrow;
  std::optional<Statistics<DoubleDouble>> wide;
  std::optional<ExactRow> exact;
};

// Some rows, which lie in the source.
class RowGroup {
 public:
  // tile: their first parts, of as many elements as the others but the last.
  RowGroup(const RowSource& source, const Plan& plan, const Affine& affine, const Tile& tile,
           const RunOptions& options)
      : source_(source),
        plan_(plan),
        affine_(affine),
        tile_(tile),
        parts_((plan.row_length + tile.count - 1) / tile.count),
        rows_(static_cast<std::size_t>(tile.rows)),
        progress_(options.progress),
        crew_(crew_of(plan, options.threads)),
        slots_(crew_.slots()) {}

  void normalize(const Kernel& kernel, std::span<double> mean, std::span<double> rstd,
                 RowSink& sink) {
    if (kernel.passes != nullptr) {
      if (is_narrow(plan_.in, plan_.out)) {
        find_statistics<double>(*kernel.passes, kernel.passes->narrow_sums, &Row::narrow);
        if (!affine_.bias.empty()) drop_cancelled(*kernel.passes);
      }
      if (!mean.empty() || !all([](const Row& row) { return row.narrow.has_value(); })) {
        find_statistics<DoubleDouble>(*kernel.passes, kernel.passes->wide_sums, &Row::wide,
                                      mean.empty() ? &Row::narrow : nullptr);
      }
    }
    find_exact(!mean.empty());
    for (std::size_t r = 0; r < mean.size(); ++r) {
      const Row& row = rows_[r];
      const bool wide = row.wide.has_value();
      mean[r] = wide ? (DoubleDouble{row.wide->center} + row.wide->shift).high : row.exact->mean();
      rstd[r] = wide ? row.wide->rstd.high : row.exact->rstd();
    }
    write(kernel, sink);
  }

 private:
  struct Slot {
    std::vector<std::byte> in;
    std::vector<std::byte> out;
    std::vector<std::byte> packed;
    std::string text;  // if that is what out is encoded as
    std::span<const std::byte> encoded;
  };

  template <class Is>
  bool all(Is is) const {
    return std::all_of(rows_.begin(), rows_.end(), is);
  }

  // The tile of elements of all rows of the group.
  Tile tile_at(std::int64_t first, std::int64_t count) const {
    return {tile_.first_row, tile_.rows, first, count};
  }
  Tile part(std::int64_t p) const {
    const std::int64_t first = p * tile_.count;
    return tile_at(first, std::min(tile_.count, plan_.row_length - first));
  }

  void read(const Tile& tile, Slot& slot) const { source_.read(tile, slot.packed, slot.in); }

  // What the tile that was read has of row r.
  RowsIn row_in(const Tile& tile, const Slot& slot, std::size_t r) const {
    const RowsIn rows{slot.in.data(), plan_.in, source_.info().byte_order, tile.rows, tile.count};
    return row_of(rows, static_cast<std::int64_t>(r));
  }
  RowsOut row_out(const Tile& tile, Slot& slot, std::size_t r) const {
    slot.out.resize(static_cast<std::size_t>(tile.rows * tile.count) * item_size(plan_.out));
    return row_of(RowsOut{slot.out.data(), plan_.out}, tile.count, static_cast<std::int64_t>(r));
  }

  // Elements of the group that may be told as done: half of them for each of the two passes.
  void tell(std::int64_t halves) {
    told_ = std::max(told_, halves / 2);
    if (progress_) progress_(tile_.first_row * plan_.row_length + told_);
  }

  // The sums of rows: what sum_part says of every part, added part by part to segments, and these one
  // after another, which is the order of summation (two_pass.hpp).
  template <class Total, class SumPart>
  std::vector<Total> sum(const std::vector<std::size_t>& which, SumPart sum_part) {
    std::vector<Total> totals(which.size());
    std::vector<Total> segments(which.size());
    std::vector<std::vector<Total>> found(slots_.size());
    crew_.run(
        parts_, [](std::int64_t, std::size_t) {},
        [&](std::int64_t p, std::size_t s) {
          const Tile tile = part(p);
          read(tile, slots_[s]);
          found[s].clear();
          for (std::size_t i = 0; i < which.size(); ++i) {
            found[s].push_back(sum_part(i, row_in(tile, slots_[s], which[i])));
          }
        },
        [&](std::int64_t p, std::size_t s) {
          const Tile tile = part(p);
          const std::int64_t end = tile.first + tile.count;
          for (std::size_t i = 0; i < which.size(); ++i) {
            segments[i] = segments[i] + found[s][i];
            if (end % kSegment != 0 && end != plan_.row_length) continue;
            totals[i] = totals[i] + segments[i];
            segments[i] = {};
          }
          tell(tile.rows * end);
        });
    return totals;
  }

  // Those of all rows, but for rows that have `unless` already.
  template <class T, class SumPart>
  void find_statistics(const Passes& passes, SumPart sum_part,
                       std::optional<Statistics<T>> Row::*statistics,
                       std::optional<Statistics<double>> Row::*unless = nullptr) {
    Slot& slot = slots_.front();
    const Tile sample = tile_at(sample_start(plan_.row_length), sample_length(plan_.row_length));
    if (!plan_.formula.rms) read(sample, slot);
    std::vector<std::size_t> which;
    std::vector<Centering<T>> centerings;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (unless != nullptr && (rows_[r].*unless).has_value()) continue;
      const double center = plan_.formula.rms ? 0 : passes.mean(row_in(sample, slot, r));
      which.push_back(r);
      centerings.emplace_back(center, plan_.row_length, plan_.formula);
    }
    for (;;) {
      std::vector<std::size_t> rows;
      std::vector<Centering<T>*> wanting;
      for (std::size_t i = 0; i < which.size(); ++i) {
        if (!centerings[i].wants_sums()) continue;
        rows.push_back(which[i]);
        wanting.push_back(&centerings[i]);
      }
      if (rows.empty()) break;
      const auto sums = sum<Sums>(rows, [&](std::size_t i, const RowsIn& row) {
        return sum_part(row, wanting[i]->center());
      });
      for (std::size_t i = 0; i < rows.size(); ++i) wanting[i]->take(sums[i]);
    }
    for (std::size_t i = 0; i < which.size(); ++i) {
      rows_[which[i]].*statistics = centerings[i].statistics();
    }
  }

  // Takes the narrow way from rows that a bias cancels: looks at parts until each row has a result that
  // is large enough, which is in the first one as a rule.
  void drop_cancelled(const Passes& passes) {
    Slot& slot = slots_.front();
    std::vector<double> largest(rows_.size());
    const auto is_cancelled = [&](std::size_t r) {
      return rows_[r].narrow && bias_cancels(largest[r], affine_);
    };
    for (std::int64_t p = 0; p < parts_; ++p) {
      const Tile tile = part(p);
      bool any = false;
      for (std::size_t r = 0; r < rows_.size(); ++r) any = any || is_cancelled(r);
      if (!any) return;
      read(tile, slot);
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        if (!is_cancelled(r)) continue;
        const double in_part = passes.narrow_write(row_in(tile, slot, r), *rows_[r].narrow, affine_,
                                                   tile.first, row_out(tile, slot, r));
        largest[r] = std::max(largest[r], in_part);
      }
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (is_cancelled(r)) rows_[r].narrow.reset();
    }
  }

  // For rows that have no other way, or whose mean and rstd are still unknown.
  void find_exact(bool stats) {
    std::vector<std::size_t> which;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      if (!rows_[r].wide && (stats || !rows_[r].narrow)) which.push_back(r);
    }
    if (which.empty()) return;
    const auto sums =
        sum<ExactSums>(which, [](std::size_t, const RowsIn& row) { return exact_sums(row); });
    for (std::size_t i = 0; i < which.size(); ++i) {
      rows_[which[i]].exact.emplace(sums[i], plan_.row_length, plan_.formula);
    }
  }

  void write_part(const Kernel& kernel, const Row& row, const RowsIn& x, std::int64_t offset,
                  const RowsOut& y) const {
    if (row.narrow) {
      kernel.passes->narrow_write(x, *row.narrow, affine_, offset, y);
    } else if (row.wide) {
      kernel.passes->wide_write(x, *row.wide, affine_, offset, y);
    } else {
      row.exact->write(x, affine_, offset, y);
    }
  }

  void write(const Kernel& kernel, RowSink& sink) {
    crew_.run(
        parts_, [](std::int64_t, std::size_t) {},
        [&](std::int64_t p, std::size_t s) {
          Slot& slot = slots_[s];
          const Tile tile = part(p);
          read(tile, slot);
          for (std::size_t r = 0; r < rows_.size(); ++r) {
            write_part(kernel, rows_[r], row_in(tile, slot, r), tile.first, row_out(tile, slot, r));
          }
          slot.encoded = sink.put(tile, slot.out, slot.packed, slot.text);
        },
        [&](std::int64_t p, std::size_t s) {
          const Tile tile = part(p);
          sink.write(slots_[s].encoded);
          tell(tile.rows * (plan_.row_length + tile.first + tile.count));
        });
  }

  const RowSource& source_;
  const Plan& plan_;
  const Affine& affine_;
  Tile tile_;
  std::int64_t parts_;
  std::vector<Row> rows_;
  const Progress& progress_;
  Crew crew_;
  std::vector<Slot> slots_;
  std::int64_t told_ = 0;
};

}  // namespace

void run_long_rows(TensorSource& given, const Plan& plan, const Kernel& kernel,
                   const Affine& affine, std::span<RowObserver* const> observers, TensorSink& sink,
                   const RunOptions& options) {
  const ForEachTile for_each = for_each_tile(options.threads);
  RowSource source(given, plan.in_view, plan.route.in, for_each);
  RowSink out(sink, plan.result(), plan.out_view, plan.route.out, for_each);
  Tile tile = plan.first_tile();
  std::vector<double> mean;
  std::vector<double> rstd;
  for (; tile.first_row < plan.rows; tile.first_row += tile.rows) {
    tile.rows = std::min(tile.rows, plan.rows - tile.first_row);
    mean.resize(plan.wants_mean_and_rstd ? static_cast<std::size_t>(tile.rows) : 0);
    rstd.resize(mean.size());
    RowGroup(source, plan, affine, tile, options).normalize(kernel, mean, rstd, out);
    const RowBlock block{tile.first_row, {}, {}, mean, rstd};
    for (RowObserver* observer : observers) observer->see(block, nullptr);
  }
  source.finish();
  for (RowObserver* observer : observers) observer->finish();
  out.finish();
}

}  // namespace lnorm
