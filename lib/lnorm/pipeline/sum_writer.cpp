#include "lnorm/pipeline/sum_writer.hpp"

#include "lnorm/kernel/add.hpp"

namespace lnorm {

void SumWriter::put(const Tile& tile, const RowsIn& rows, Buffers& buffer) const {
  std::span<const std::byte> elements(rows.data, tile.bytes(item_size(rows.dtype)));
  if (rows.dtype != dtype_) {
    buffer.rounded.resize(tile.bytes(item_size(dtype_)));
    round_row({rows.data, rows.dtype, rows.byte_order, 1, tile.rows * tile.count},
              {buffer.rounded.data(), dtype_});
    elements = buffer.rounded;
  }
  buffer.encoded = out_.put(tile, elements, buffer.packed, buffer.text);
}

BlockFindings SumWriter::examine(const RowBlock& block) const {
  auto buffer = std::make_shared<Buffers>();
  put({block.first_row, block.x.rows, 0, block.x.row_length}, block.x, *buffer);
  return buffer;
}

}  // namespace lnorm
