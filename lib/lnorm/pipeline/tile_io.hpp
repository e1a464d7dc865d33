#pragma once

#include <cstddef>
#include <vector>

#include "lnorm/core/row_view.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/pipeline/blocks.hpp"

namespace lnorm {

// Reads a tile at positions, as rows. raw: room for what is read as it lies in the file.
void read_tile(const TensorSource& source, const RowView& view, const Tile& tile,
               std::vector<std::byte>& raw, std::vector<std::byte>& rows);

// Writes rows of items of a size to their positions. raw: room for what is written as it will lie in
// the file.
void write_tile(const TensorSink& sink, const RowView& view, const Tile& tile, std::size_t item,
                const std::vector<std::byte>& rows, std::vector<std::byte>& raw);

// Copies all rows, which are those of both views, in tiles that are read and written in runs as long as
// memory allows. source and sink have positions. Does not finish them.
void copy_tiles(const TensorSource& source, const RowView& from, const TensorSink& sink,
                const RowView& to, std::int64_t rows, const RunOptions& options);

}  // namespace lnorm
