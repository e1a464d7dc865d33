#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/rows.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

// What becomes of a block of rows: layer normalisation, softmax. stats is filled where there is room.
using Transform = std::function<void(const RowsIn& x, const RowsOut& y, const RowStats& stats)>;

// What observers see of every block of rows, in order.
struct RowBlock {
  std::int64_t first_row;
  RowsIn x;
  RowsOut y;
  std::span<const double> mean;  // one a row if the plan wants stats, else none
  std::span<const double> rstd;
};

class RowObserver {
 public:
  RowObserver() = default;
  RowObserver(const RowObserver&) = delete;
  RowObserver& operator=(const RowObserver&) = delete;
  virtual ~RowObserver() = default;

  virtual void see(const RowBlock& block) = 0;

  // After the last block.
  virtual void finish() = 0;
};

// Is told after every block how many elements are done; empty if nobody wants to know.
using Progress = std::function<void(std::int64_t elements)>;

// The loop: blocks of rows from the source through the transform past the observers into the sink,
// if there is one. Finishes all of them. Throws Error or ClosedPipe.
void run(TensorSource& source, const Plan& plan, const Transform& transform,
         std::span<RowObserver* const> observers, TensorSink* sink, const Progress& progress = {});

}  // namespace lnorm
