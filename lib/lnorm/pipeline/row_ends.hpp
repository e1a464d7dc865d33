#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lnorm/io/spooled_tensor.hpp"
#include "lnorm/pipeline/blocks.hpp"
#include "lnorm/pipeline/plan.hpp"

// Where the rows of a plan come from and where they go to, whatever the order in which they lie there:
// the loops see tiles as rows, one after another.
namespace lnorm {

// What the loop takes at a time: blocks of whole rows, in order; or parts of rows, at any position.
enum class Access { blocks, parts };

class RowSource {
 public:
  // Spools what has no positions where they are needed, and transposes, by way of a temporary file, what
  // could only be gathered element by element.
  RowSource(TensorSource& source, const Plan& plan, Access access, const RunOptions& options);

  const TensorInfo& info() const noexcept { return source_->info(); }

  // Takes a block from a source without positions: before read, in order. raw: room.
  void begin(const Tile& tile, std::vector<std::byte>& raw, std::vector<std::byte>& rows);

  // The tile as rows. Several threads may do so at once.
  void read(const Tile& tile, std::vector<std::byte>& raw, std::vector<std::byte>& rows) const;

  void finish() { source_->finish(); }

 private:
  std::unique_ptr<TensorSource> ordered_;
  std::optional<PositionedSource> positioned_;
  TensorSource* source_;
  RowView view_;
};

class RowSink {
 public:
  // options: for what finish has to do.
  RowSink(TensorSink& sink, const Plan& plan, Access access, const RunOptions& options);

  // Rows on their way: what write is to be given in order, which is nothing where they have been written
  // to their positions. raw, text: room for that. Several threads may do so at once.
  std::span<const std::byte> put(const Tile& tile, const std::vector<std::byte>& rows,
                                 std::vector<std::byte>& raw, std::string& text) const;
  void write(std::span<const std::byte> encoded);

  void finish();

 private:
  TensorSink& target() const noexcept { return positioned_ ? **positioned_ : sink_; }

  TensorSink& sink_;
  const Plan& plan_;
  const RunOptions& options_;
  std::optional<PositionedSink> positioned_;
  std::optional<TensorSpool> rows_;  // as rows, until all are there
};

}  // namespace lnorm
