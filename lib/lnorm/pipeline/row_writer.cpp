#include "lnorm/pipeline/row_writer.hpp"

#include "lnorm/kernel/add.hpp"

namespace lnorm {

void SumWriter::put(const Tile& tile, const RowsIn& rows, TileBuffer& buffer) const {
  std::span<const std::byte> elements(rows.data, tile.bytes(item_size(rows.dtype)));
  if (rows.dtype != dtype_) {
    buffer.rows.resize(tile.bytes(item_size(dtype_)));
    round_row({rows.data, rows.dtype, rows.byte_order, 1, tile.rows * tile.count},
              {buffer.rows.data(), dtype_});
    elements = buffer.rows;
  }
  out_.put(tile, elements, buffer);
}

BlockFindings SumWriter::examine(const RowBlock& block) const {
  auto buffer = std::make_shared<TileBuffer>();
  put({block.first_row, block.x.rows, 0, block.x.row_length}, block.x, *buffer);
  return buffer;
}

}  // namespace lnorm
