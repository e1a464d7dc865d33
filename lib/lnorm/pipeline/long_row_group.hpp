#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// The parts of each row, and those of them that a rank has.
inline std::int64_t parts_of(const Plan& plan) {
  return (plan.row_length + plan.route.count - 1) / plan.route.count;
}
inline BlockRange share_of_parts(const Plan& plan, const Ranks& ranks) {
  return block_range_of(parts_of(plan), ranks, true);
}

// Some rows that are too long to be held whole. Threads take them in parts: once or more for their sums, then to write.
// Every rank has all rows, which take the sums over all parts, and some of the parts. Row is a RowNormalizer or a
// RowGradient, RowSums what it takes.
template <class Row, class RowSums>
class LongRowGroup {
 protected:
  // tile: their first parts, of as many elements as the others but the last.
  LongRowGroup(const Plan& plan, const Tile& tile, const RunOptions& options)
      : plan_(plan),
        executor_(executor_for(plan, options.threads)),
        tile_(tile),
        ranks_(*options.ranks),
        share_(share_of_parts(plan, ranks_)),
        progress_(options.progress) {}
  ~LongRowGroup() = default;

  // Part p of all rows.
  Tile part(std::int64_t p) const {
    const std::int64_t first = p * tile_.count;
    return {tile_.first_row, tile_.rows, first, std::min(tile_.count, plan_.row_length - first)};
  }

  // Calls see(part) for the parts of row r alone.
  template <class See>
  void for_each_part_of(std::int64_t r, See see) const {
    for (std::int64_t p = 0; p < parts_of(plan_); ++p) {
      Tile tile = part(p);
      tile.first_row += r;
      tile.rows = 1;
      see(tile);
    }
  }

  // read(part, slot) brings a part of all rows, and sums_of(part, slot, r) are then those of row r.
  template <class Read, class SumsOf>
  void sum_up(Read read, SumsOf sums_of) {
    std::vector<std::vector<RowSums>> sums(executor_.slots());
    for (;;) {
      std::vector<std::int64_t> wanting;
      for (std::int64_t r = 0; r < tile_.rows; ++r) {
        if (row(r).wants_sums()) wanting.push_back(r);
      }
      if (wanting.empty()) return;
      std::vector<RowSums> totals(wanting.size());
      executor_.run(
          share_.size(), {},
          [&](std::int64_t p, std::size_t s) {
            const Tile tile = part(share_.begin + p);
            read(tile, s);
            sums[s].clear();
            for (const std::int64_t r : wanting) sums[s].push_back(sums_of(tile, s, r));
          },
          [&](std::int64_t p, std::size_t s) {
            for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += sums[s][i];
            ranks_.check();
            report_progress(done(p));
          });
      add_up_over_ranks(totals);
      for (std::size_t i = 0; i < totals.size(); ++i) row(wanting[i]).take(totals[i]);
    }
  }

  // The second pass over the parts: work(part, slot) by any thread, then end(part, slot) in order.
  template <class Work, class End>
  void write_parts(Work work, End end) {
    executor_.run(
        share_.size(), {}, [&](std::int64_t p, std::size_t s) { work(part(share_.begin + p), s); },
        [&](std::int64_t p, std::size_t s) {
          const Tile tile = part(share_.begin + p);
          end(tile, s);
          ranks_.check();
          report_progress(plan_.row_length + done(p));
        });
  }

  Row& row(std::int64_t r) { return *rows_[static_cast<std::size_t>(r)]; }

  const Plan& plan_;
  const Executor executor_;
  std::vector<std::unique_ptr<Row>> rows_;

 private:
  // In one order, for all ranks: then their rows go the same way.
  void add_up_over_ranks(std::vector<RowSums>& totals) {
    all_reduce(
        ranks_, [&] { return serialize(totals); },
        [&](const std::string& bytes) {
          std::vector<RowSums> others;
          deserialize(bytes, others);
          for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += others[i];
        },
        [&](const std::string& bytes) { deserialize(bytes, totals); });
  }

  // Elements of a row that are done after a part of this rank's. The others are about as far.
  std::int64_t done(std::int64_t p) const {
    return std::min((p + 1) * ranks_.count() * tile_.count, plan_.row_length);
  }

  // Elements of a row that may be told as done: half of them for each of the two passes.
  void report_progress(std::int64_t halves) {
    reported_ = std::max(reported_, tile_.rows * halves / 2);
    if (progress_) progress_(tile_.first_row * plan_.row_length + reported_);
  }

  const Tile tile_;
  Ranks& ranks_;
  const BlockRange share_;  // of the parts
  const Progress& progress_;
  std::int64_t reported_ = 0;
};

}  // namespace lnorm
