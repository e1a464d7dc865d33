#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lnorm/core/interruption.hpp"
#include "lnorm/diagnosis/gradient_variant.hpp"
#include "lnorm/pipeline/block_loop.hpp"
#include "lnorm/pipeline/check_rows.hpp"
#include "lnorm/pipeline/gradient_rows.hpp"

namespace lnorm {

// The rows of a backward pass in blocks, and their exact gradients, which others are compared with. All sources have random
// access, and the plan's rows are whole and in C order.
class ExactGradients {
 public:
  // What a thread has of the block under way.
  struct Buffers {
    GradientRows::Buffers in;
    std::vector<std::byte> dx;
  };

  // weight and bias are laid out by the plan, and outlive it. dx: its dtype. is_uniform: one parameter serves all elements.
  ExactGradients(const GradSources& sources, const GradPlan& plan, const Backend& backend,
                 const AffineTerm& weight, const AffineTerm& bias, DType dx, bool is_uniform,
                 int threads);

  // Calls work(block, slot) for each block, which is in the slot's Buffers, on threads, and then end(slot), in order.
  template <class Slot, class Work, class End>
  void for_each_block(const RunOptions& options, std::vector<Slot>& slots, Work work,
                      End end) const {
    const LoopExtent all = extent();
    lnorm::for_each_block(
        all, Executor(options.threads, all.blocks()), options, slots, nullptr,
        [&](const Block& block, Slot& slot) {
          rows_.read_rows(tile_of(block), slot.in);
          work(block, slot);
        },
        [&](const Block&, Slot& slot) { end(slot); });
  }

  // The gradients of a block that was read. Those of columns are gathered.
  void find(const Block& block, Buffers& buffers, bool wants_dx, bool wants_columns) const;

  // The dx that was found.
  RowsIn dx(const Block& block, const Buffers& buffers) const;

  // Calls see(row) for the rows of a block that was read: what the kernel was given. The next row takes the memory of the one before.
  // measured: null, or the formula by which each row has what its statistics lose.
  template <class See>
  void for_each_row(const Block& block, const GradientRows::Buffers& in, See see,
                    const JudgeSetting* measured = nullptr) const {
    std::vector<SumLosses> losses;
    if (measured != nullptr) losses = losses_of_block(block, in, *measured);
    SampleRow row;
    for (std::int64_t r = 0; r < block.count; ++r) {
      check_interruption();
      fill_row(block, in, r, row);
      if (measured != nullptr) row.losses = losses[static_cast<std::size_t>(r)];
      see(row);
    }
  }

  // Calls see(row) for all rows, in order.
  template <class See>
  void for_each_row(See see) const {
    GradientRows::Buffers buffer;
    const LoopExtent all = extent();
    for (std::int64_t first = 0; first < all.items; first += all.items_of_block) {
      const Block block{first, std::min(all.items_of_block, all.items - first)};
      rows_.read_rows(tile_of(block), buffer);
      for_each_row(block, buffer, see);
    }
  }

  // A row by itself, and its dx.
  SampleRow row(std::int64_t number) const;

  // What threads have gathered of all columns.
  std::unique_ptr<ColumnGradients> gathered() { return merged(columns_, plan_.rows.row_length); }

  // The results of that; one number where one parameter serves all of them. Parameters that elements of a row, or
  // some rows, share are found by reading all rows once more.
  std::vector<double> parameters(Quantity of, ColumnGradients& columns, DType dtype) const;

 private:
  Tile tile_of(const Block& block) const {
    return {block.first, block.count, 0, plan_.rows.row_length};
  }
  LoopExtent extent() const;
  void fill_row(const Block& block, const GradientRows::Buffers& in, std::int64_t r,
                SampleRow& row) const;
  std::vector<SumLosses> losses_of_block(const Block& block, const GradientRows::Buffers& in,
                                         const JudgeSetting& setting) const;
  bool shares() const { return plan_.shares_weights && !is_uniform_; }

  const GradPlan& plan_;
  const AffineTerm& bias_;
  bool is_uniform_;
  GradientSetting setting_;
  mutable GradientRows rows_;
  mutable Pool<ColumnGradients> columns_;
};

}  // namespace lnorm
