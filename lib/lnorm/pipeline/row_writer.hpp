#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lnorm/layout/row_sink.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Writes one number a row, mean or rstd, to a sink of float64, or the scales of rows, as the blocks pass.
class RowWriter final : public RowObserver {
 public:
  RowWriter(TensorSink& sink, const Plan& plan, std::span<const double> RowBlock::*column)
      : column_(column),
        out_(sink, {"", DType::float64, plan.row_shape(true)}, plan.row_number_view,
             {.needs_random_access = !plan.rows_in_order()}, for_each_tile(1)) {}

  RowWriter(TensorSink& sink, const Plan& plan, DType scale_dtype)
      : column_(&RowBlock::scale),
        dtype_(scale_dtype),
        of_row_(plan.scales_of_row),
        out_(sink, {"", dtype_, plan.scale_shape(true)}, plan.scale_view,
             {.needs_random_access = !plan.rows_in_order()}, for_each_tile(1)) {}

  void see(const RowBlock& block, const BlockFindings&) override;
  void finish() override { out_.finish(); }
  void skip() override { out_.skip(); }
  bool takes_parts() const override { return out_.has_random_access(); }

 private:
  std::span<const double> RowBlock::*column_;
  DType dtype_ = DType::float64;
  std::int64_t of_row_ = 1;
  RowSink out_;
  TileBuffer buffer_;
};

// Writes all numbers of a small tensor: rank 0 has them.
void write_numbers(const std::vector<double>& numbers, const TensorInfo& info, TensorSink& sink,
                   const RunOptions& options);

// Writes the rows that are normalized, rounded to the plan's dtype of roundings, as they pass.
class SumWriter final : public RowObserver {
 public:
  SumWriter(TensorSink& sink, const Plan& plan, int threads)
      : dtype_(plan.rounding),
        out_(sink, plan.sum(), plan.out_view, plan.route.out, for_each_tile(threads)) {}

  // Takes rows, one after another. Several threads may do so at once. Then write, in order.
  void put(const Tile& tile, const RowsIn& rows, TileBuffer& buffer) const;
  void write(const TileBuffer& buffer) { out_.write(buffer); }

  BlockFindings examine(const RowBlock& block) const override;
  void see(const RowBlock&, const BlockFindings& findings) override {
    write(*std::any_cast<const std::shared_ptr<TileBuffer>&>(findings));
  }
  void finish() override { out_.finish(); }
  void skip() override { out_.skip(); }
  bool takes_parts() const override { return out_.has_random_access(); }

 private:
  DType dtype_;
  RowSink out_;
};

}  // namespace lnorm
