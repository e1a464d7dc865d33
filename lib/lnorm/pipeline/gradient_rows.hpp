#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/core/pool.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/backward.hpp"
#include "lnorm/kernel/parameter_gradients.hpp"
#include "lnorm/layout/row_source.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/grad_plan.hpp"
#include "lnorm/pipeline/ranks.hpp"

namespace lnorm {

// What a backward pass reads. mean and rstd: null if they are computed; else a number each, of every row or for all of them.
// Constants: the variance stands in the place of rstd, and must not be below 0.
struct GradSources {
  TensorSource& x;
  TensorSource& dy;
  TensorSource* mean = nullptr;
  TensorSource* rstd = nullptr;
  bool are_constants = false;
};

// Throws Error if a tensor is not what it is on rank 0.
void check_same(Ranks& ranks, const GradSources& sources);

// Whether ranks can read parts of all of them.
bool can_distribute(const GradSources& sources, const GradPlan& plan);

// The rows of a backward pass: x and dy side by side, and what was saved of each row.
class GradientRows {
 public:
  GradientRows(const GradSources& sources, const GradPlan& plan, const ForEachTile& for_each_tile);

  // A tile under way. The next one uses it again.
  struct Buffers {
    TileBuffer x;
    TileBuffer dy;
    TileBuffer mean;
    TileBuffer rstd;
    std::vector<SavedStatistics> saved;  // of every row of the tile, if there are any
  };

  // These do what RowSource's do, for x, dy and what was saved of the tile's rows.
  void begin(const Tile& tile, Buffers& buffer);
  void read_rows(const Tile& tile, Buffers& buffer) const;

  // The same for x and dy alone, or for what was saved alone, where rows go in parts.
  void read(const Tile& tile, Buffers& buffer) const;
  void begin_saved(const Tile& tile, Buffers& buffer);
  void read_saved(const Tile& tile, Buffers& buffer) const;

  // The tile that was read: all its rows, or what it has of row r.
  RowsIn x(const Tile& tile, const Buffers& buffer) const { return rows_in(x_, tile, buffer.x); }
  RowsIn dy(const Tile& tile, const Buffers& buffer) const { return rows_in(dy_, tile, buffer.dy); }
  GradientPart part(const Tile& tile, const Buffers& buffer, std::int64_t r) const {
    return {row_of(x(tile, buffer), r), row_of(dy(tile, buffer), r), tile.first};
  }

  // What was saved of row r of the tile; null if nothing was.
  static const SavedStatistics* saved(const Buffers& buffer, std::int64_t r) {
    return buffer.saved.empty() ? nullptr : &buffer.saved[static_cast<std::size_t>(r)];
  }

  // The gradients of a tile of whole rows that was read. dx: as of layer_norm_backward. columns: null if dx alone is wanted, by
  // the layout.
  void find(const GradientSetting& setting, const AffineLayout& layout, const Tile& tile,
            const Buffers& buffer, const RowsOut& dx, Pool<ColumnGradients>* columns) const;

  // Reads the rows of this rank once more, for as long as all of these live: several blocks at once, or rows in parts.
  RowReplay again(const Plan& plan, const RunOptions& options);

  // As RowSource's.
  void finish();

 private:
  static RowsIn rows_in(const RowSource& source, const Tile& tile, const TileBuffer& buffer) {
    const TensorInfo& info = source.info();
    return {buffer.found, info.dtype, info.byte_order, tile.rows, tile.count, 0, tile.first_row};
  }

  RowSource x_;
  RowSource dy_;
  // Statistics that are saved: a number of each row, or one of all.
  struct Saved {
    std::optional<RowSource> rows;
    Number number{};
  };
  std::optional<Saved> saved(TensorSource* source, const RowView& numbers, const IoPath& io_path,
                             const ForEachTile& for_each_tile);

  std::optional<Saved> mean_;
  std::optional<Saved> rstd_;
  bool are_constants_;
  std::string spread_name_;
};

// Adds up what threads have gathered of so many columns. Call it once: the sum is one of the pool's.
std::unique_ptr<ColumnGradients> merged(Pool<ColumnGradients>& pool, std::int64_t columns);

}  // namespace lnorm
