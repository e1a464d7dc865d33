#pragma once

#include <cstdint>
#include <span>

#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

// What observers see of every block of rows, in order.
struct RowBlock {
  std::int64_t first_row;
  std::span<const double> mean;  // one a row
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

// The loop that every command runs: blocks of rows from the source through the kernel past the
// observers into the sink. Finishes all of them. Throws Error or ClosedPipe.
void run(TensorSource& source, const Plan& plan, const Kernel& kernel, const Affine& affine,
         std::span<RowObserver* const> observers, TensorSink& sink);

}  // namespace lnorm
