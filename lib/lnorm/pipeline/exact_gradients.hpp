#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

  LoopExtent extent() const;

  // These read a block: the first one what must come in order.
  void begin(const Block& block, GradientRows::Buffers& in) { rows_.begin(tile_of(block), in); }
  void read(const Block& block, GradientRows::Buffers& in) const {
    rows_.read_rows(tile_of(block), in);
  }

  // The gradients of a block that was read. Those of columns are gathered.
  void find(const Block& block, Buffers& buffers, bool wants_dx, bool wants_columns) const;

  // The dx that was found.
  RowsIn dx(const Block& block, const Buffers& buffers) const;

  // Calls see(row, r) for the rows of a block that was read, in doubles.
  template <class See>
  void for_each_row(const Block& block, const GradientRows::Buffers& in, See see) const {
    std::vector<double> x;
    std::vector<double> dy;
    std::vector<double> weight;
    std::vector<double> bias;
    const AffineLayout& layout = plan_.rows.affine;
    const std::int64_t n = plan_.rows.row_length;
    for (std::int64_t r = 0; r < block.count; ++r) {
      check_interruption();
      const std::int64_t number = block.first + r;
      if (r == 0 || !layout.rows.empty()) {
        weight = numbers_of(setting_.weight, n, 1, layout, number);
        bias = numbers_of(bias_, n, 0, layout, number);
      }
      const GradientPart part = rows_.part(tile_of(block), in, r);
      const auto of_x = decode(setting_.backend, part.x, x);
      const auto of_dy = decode(setting_.backend, part.dy, dy);
      see(GradientRow{number, of_x, of_dy, weight, bias, GradientRows::saved(in, r)}, r);
    }
  }

  // Calls see(row) for all rows, in order. measured: null, or the formula by which each row has what its statistics lose.
  template <class See>
  void for_each_row(See see, const JudgeSetting* measured = nullptr) const {
    GradientRows::Buffers buffer;
    const LoopExtent all = extent();
    for (std::int64_t first = 0; first < all.items; first += all.items_of_block) {
      const Block block{first, std::min(all.items_of_block, all.items - first)};
      read(block, buffer);
      std::vector<GradientLosses> losses;
      if (measured != nullptr) losses = statistic_losses(block, buffer, *measured);
      for_each_row(block, buffer, [&](const GradientRow& row, std::int64_t r) {
        GradientRow of_sums = row;
        if (measured != nullptr) of_sums.losses = &losses[static_cast<std::size_t>(r)];
        see(of_sums);
      });
    }
  }

  // A row by itself, with the numbers that it consists of, and its dx.
  struct HeldRow {
    std::vector<double> x;
    std::vector<double> dy;
    std::vector<double> weight;
    std::vector<double> bias;
    std::optional<SavedStatistics> saved;
    std::vector<double> dx;
    std::int64_t number;

    GradientRow row() const { return {number, x, dy, weight, bias, saved ? &*saved : nullptr}; }
  };
  HeldRow hold(std::int64_t number) const;

  // What threads have gathered of all columns.
  std::unique_ptr<ColumnGradients> gathered() { return merged(columns_, plan_.rows.row_length); }

  // The results of that; one number where one parameter serves all of them. Parameters that elements of a row, or
  // some rows, share are found by reading all rows once more.
  std::vector<double> parameters(Quantity of, ColumnGradients& columns, DType dtype) const;

 private:
  Tile tile_of(const Block& block) const {
    return {block.first, block.count, 0, plan_.rows.row_length};
  }
  std::vector<GradientLosses> statistic_losses(const Block& block, const GradientRows::Buffers& in,
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
