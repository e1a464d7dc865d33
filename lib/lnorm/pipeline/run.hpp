#pragma once

#include <any>
#include <bit>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>

#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/quantize.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

// What becomes of a block of rows: layer normalization, softmax. It fills mean and rstd if there is room.
using Transform =
    std::function<void(const RowsIn& x, const RowsOut& y, const RowNumbersOut& statistics)>;

// Layer normalization, quantized. What it refers to must outlive it.
Transform quantization(const RowQuantizer& quantizer);

// Layer normalization, by statistics that are given, or if that is null by the rows' own. What it refers to must outlive it.
Transform normalization(const Backend& backend, const GivenStatistics* given, const Affine& affine,
                        const Formula& formula);

// What an observer wants to remember of a block.
using BlockFindings = std::any;

// What observers see of every block of rows, in order.
struct RowBlock {
  std::int64_t first_row;
  RowsIn x;
  RowsOut y;
  std::span<const double> mean;  // one a row if the plan wants them, else none
  std::span<const double> rstd;
  std::span<const double> variance;
  std::span<const double> scale{};  // the plan's scales_of_row each
};

// Where they go; null if nobody wants them.
inline double* room(std::span<double> numbers) noexcept {
  return numbers.empty() ? nullptr : numbers.data();
}

// What the transform made of the block's rows.
inline RowsIn output_rows(const RowBlock& block) noexcept {
  return {block.y.data, block.y.dtype, std::endian::native, block.x.rows, block.x.row_length};
}

class RowObserver {
 public:
  RowObserver() = default;
  RowObserver(const RowObserver&) = delete;
  RowObserver& operator=(const RowObserver&) = delete;
  virtual ~RowObserver() = default;

  // Finds out what can be found out from a block alone; see gets it. Called for several blocks at once.
  virtual BlockFindings examine(const RowBlock&) const { return {}; }

  // The elements of the block are gone by then.
  virtual void see(const RowBlock& block, const BlockFindings& findings) = 0;

  // After the last block.
  virtual void finish() {}

  // Whether several ranks may see parts of the blocks, each of them its own.
  virtual bool takes_parts() const { return false; }

  // Replaces all that on a rank that has no part.
  virtual void skip() {}

  // After that, on every rank: brings together what the ranks have seen, in their order.
  virtual void merge(Ranks&) {}
};

// The threads that take the plan's tiles, or the parts of its rows. threads: how many are wanted. sink: if results are
// written.
Executor executor_for(const Plan& plan, int threads, const TensorSink* sink = nullptr);

// The loop: tiles in blocks of rows from the source through the transform, if there is one, past the observers into the
// sink, if there is one. Without a transform there is no sink, and blocks have no output. Finishes all of them. Several threads transform blocks; if the source has random access,
// they read them as well. Several ranks do a part each, where source and sink have random access; otherwise rank 0 does all.
// Throws Error or ClosedPipe.
void run(TensorSource& source, const Plan& plan, const Transform& transform,
         std::span<RowObserver* const> observers, TensorSink* sink, const RunOptions& options = {});

// Shows every block to find(block), which several threads call, and what it finds to take(found), in order. Does not finish the source.
// Rank 0 does all of it.
template <class Find, class Take>
void examine_rows(TensorSource& source, const Plan& plan, const Transform& transform, Find find,
                  Take take, const RunOptions& options) {
  using Found = std::invoke_result_t<Find, const RowBlock&>;
  class Examiner final : public RowObserver {
   public:
    Examiner(Find& find, Take& take) : find_(find), take_(take) {}
    BlockFindings examine(const RowBlock& block) const override { return find_(block); }
    void see(const RowBlock&, const BlockFindings& findings) override {
      take_(std::any_cast<const Found&>(findings));
    }

   private:
    Find& find_;
    Take& take_;
  };
  Examiner examiner(find, take);
  RowObserver* const observers[] = {&examiner};
  LentSource lent(source);
  run(lent, plan, transform, observers, nullptr, options);
}

}  // namespace lnorm
