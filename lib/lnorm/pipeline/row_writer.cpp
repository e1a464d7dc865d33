#include "lnorm/pipeline/row_writer.hpp"

#include "lnorm/layout/tiles.hpp"

namespace lnorm {

RowWriter::RowWriter(TensorSink& sink, const Plan& plan, std::span<const double> RowBlock::*column)
    : sink_(sink), plan_(plan), column_(column) {
  if (!plan.rows_in_order()) {
    positioned_.emplace(sink, TensorInfo{"", DType::float64, plan.row_shape(true)});
  }
}

void RowWriter::see(const RowBlock& block, BlockFindings*) {
  const std::span<const double> numbers = block.*column_;
  const std::span<const std::byte> bytes = std::as_bytes(numbers);
  if (!positioned_) return sink_.write(sink_.encode(block.first_row, bytes, text_));
  const Tile tile{block.first_row, std::ssize(numbers), 0, 1};
  write_tile(**positioned_, plan_.row_number_view, tile, sizeof(double),
             {bytes.begin(), bytes.end()}, packed_);
}

void RowWriter::finish() {
  if (positioned_) {
    positioned_->finish();
  } else {
    sink_.finish();
  }
}

}  // namespace lnorm
