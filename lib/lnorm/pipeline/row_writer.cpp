#include "lnorm/pipeline/row_writer.hpp"

namespace lnorm {

RowWriter::RowWriter(TensorSink& sink, const Plan& plan, std::span<const double> RowBlock::*column)
    : column_(column),
      out_(sink, {"", DType::float64, plan.row_shape(true)}, plan.row_number_view,
           {.needs_positions = !plan.rows_in_order()}, {}) {}

void RowWriter::see(const RowBlock& block, const BlockFindings&) {
  const std::span<const double> numbers = block.*column_;
  const Tile tile{block.first_row, std::ssize(numbers), 0, 1};
  out_.write(out_.put(tile, std::as_bytes(numbers), packed_, text_));
}

}  // namespace lnorm
