#include "lnorm/pipeline/row_writer.hpp"

#include <vector>

#include "lnorm/core/chunk.hpp"
#include "lnorm/kernel/add.hpp"

namespace lnorm {

void RowWriter::see(const RowBlock& block, const BlockFindings&) {
  const std::span<const double> numbers = block.*column_;
  const Tile tile{block.first_row, std::ssize(numbers) / of_row_, 0, of_row_};
  std::vector<std::byte> encoded(numbers.size() * item_size(dtype_));
  store(numbers.data(), std::ssize(numbers), dtype_, encoded.data());
  out_.put(tile, encoded, buffer_);
  out_.write(buffer_);
}

void write_numbers(const std::vector<double>& numbers, const TensorInfo& info, TensorSink& sink,
                   const RunOptions& options) {
  if (!options.ranks->is_first()) return sink.skip();
  const std::int64_t count = std::ssize(numbers);
  RowSink out(sink, info, RowView::contiguous(1, count), {}, for_each_tile(options.threads));
  if (count > 0) {
    TileBuffer buffer;
    buffer.rows.resize(numbers.size() * item_size(info.dtype));
    store(numbers.data(), count, info.dtype, buffer.rows.data());
    out.put({0, 1, 0, count}, buffer.rows, buffer);
    out.write(buffer);
  }
  out.finish();
}

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
