#pragma once

#include <span>
#include <string>
#include <vector>

#include "lnorm/layout/row_sink.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Writes one number a row, mean or rstd, to a sink of float64, as the blocks pass.
class RowWriter final : public RowObserver {
 public:
  RowWriter(TensorSink& sink, const Plan& plan, std::span<const double> RowBlock::*column)
      : column_(column),
        out_(sink, {"", DType::float64, plan.row_shape(true)}, plan.row_number_view,
             {.needs_random_access = !plan.rows_in_order()}, for_each_tile(1)) {}

  void see(const RowBlock& block, const BlockFindings&) override {
    const std::span<const double> numbers = block.*column_;
    const Tile tile{block.first_row, std::ssize(numbers), 0, 1};
    out_.write(out_.put(tile, std::as_bytes(numbers), packed_, text_));
  }
  void finish() override { out_.finish(); }
  void skip() override { out_.skip(); }
  bool takes_parts() const override { return out_.has_random_access(); }

 private:
  std::span<const double> RowBlock::*column_;
  RowSink out_;
  std::string text_;
  std::vector<std::byte> packed_;
};

}  // namespace lnorm
