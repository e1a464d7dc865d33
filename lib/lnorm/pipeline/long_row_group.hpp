#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lnorm/pipeline/block_loop.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// The elements of each row, in parts. Ranks have some of the parts each.
inline LoopExtent parts_of(const Plan& plan) { return {plan.row_length, plan.route.count}; }

// Some rows that are too long to be held whole. Threads take them in parts: once or more for their sums, then to write.
// Every rank has all rows, which take the sums over all parts, and some of the parts. Row is a RowNormalizer or a
// RowGradient, RowSums what it takes, and Buffers have what was read and what is to be written.
template <class Row, class RowSums, class Buffers>
class LongRowGroup {
 protected:
  struct Slot : Buffers {
    std::vector<RowSums> sums;
  };

  // tile: their first parts, of as many elements as the others but the last.
  LongRowGroup(const Plan& plan, const Tile& tile, const RunOptions& options)
      : plan_(plan),
        options_(options),
        executor_(executor_for(plan, options.threads)),
        slots_(executor_.slots()),
        tile_(tile) {}
  ~LongRowGroup() = default;

  // Calls see(part) for the parts of row r alone.
  template <class See>
  void for_each_part_of(std::int64_t r, See see) const {
    const LoopExtent parts = parts_of(plan_);
    for (std::int64_t first = 0; first < parts.items; first += parts.items_of_block) {
      const std::int64_t count = std::min(parts.items_of_block, parts.items - first);
      see(Tile{tile_.first_row + r, 1, first, count});
    }
  }

  // read(part, slot) brings a part of all rows, and sums_of(part, slot, r) are then those of row r.
  template <class Read, class SumsOf>
  void sum_up(Read read, SumsOf sums_of) {
    for (;;) {
      std::vector<std::int64_t> wanting;
      for (std::int64_t r = 0; r < tile_.rows; ++r) {
        if (row(r).wants_sums()) wanting.push_back(r);
      }
      if (wanting.empty()) return;
      std::vector<RowSums> totals(wanting.size());
      const auto add = [&](const std::vector<RowSums>& more) {
        for (std::size_t i = 0; i < totals.size(); ++i) totals[i] += more[i];
      };
      for_each_part(
          0,
          [&](const Tile& tile, Slot& slot) {
            read(tile, slot);
            slot.sums.clear();
            for (const std::int64_t r : wanting) slot.sums.push_back(sums_of(tile, slot, r));
          },
          [&](Slot& slot) { add(slot.sums); });
      // All ranks add up in one order: then their rows go the same way.
      all_reduce_value(*options_.ranks, totals, add);
      for (std::size_t i = 0; i < totals.size(); ++i) row(wanting[i]).take(totals[i]);
    }
  }

  // The second pass over the parts: work(part, slot) by any thread, then end(slot) in order.
  template <class Work, class End>
  void write_parts(Work work, End end) {
    for_each_part(plan_.row_length, work, end);
  }

  Row& row(std::int64_t r) { return *rows_[static_cast<std::size_t>(r)]; }

  const Plan& plan_;
  const RunOptions& options_;
  const Executor executor_;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Row>> rows_;

 private:
  // before: elements of a row that earlier passes have done.
  template <class Work, class End>
  void for_each_part(std::int64_t before, Work work, End end) {
    const RunOptions options{options_.threads,
                             [&](std::int64_t done) { report_progress(before + done); },
                             options_.ranks};
    for_each_block(
        parts_of(plan_), executor_, options, slots_, nullptr,
        [&](const Block& part, Slot& slot) {
          work(Tile{tile_.first_row, tile_.rows, part.first, part.count}, slot);
        },
        [&](const Block&, Slot& slot) { end(slot); });
  }

  // Elements of a row that may be told as done: half of them for each of the two passes.
  void report_progress(std::int64_t halves) {
    reported_ = std::max(reported_, tile_.rows * halves / 2);
    if (options_.progress) options_.progress(tile_.first_row * plan_.row_length + reported_);
  }

  const Tile tile_;
  std::int64_t reported_ = 0;
};

}  // namespace lnorm
