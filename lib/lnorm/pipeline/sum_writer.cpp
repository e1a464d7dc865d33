#include "lnorm/pipeline/sum_writer.hpp"

#include "lnorm/kernel/add.hpp"

namespace lnorm {

void SumWriter::put(const Tile& tile, const RowsIn& rows, Room& room) const {
  std::span<const std::byte> elements(rows.data, tile.bytes(item_size(rows.dtype)));
  if (rows.dtype != dtype_) {
    room.rounded.resize(tile.bytes(item_size(dtype_)));
    round_row({rows.data, rows.dtype, rows.byte_order, 1, tile.rows * tile.count},
              {room.rounded.data(), dtype_});
    elements = room.rounded;
  }
  room.encoded = out_.put(tile, elements, room.packed, room.text);
}

BlockFindings SumWriter::examine(const RowBlock& block) const {
  auto room = std::make_shared<Room>();
  put({block.first_row, block.x.rows, 0, block.x.row_length}, block.x, *room);
  return room;
}

}  // namespace lnorm
