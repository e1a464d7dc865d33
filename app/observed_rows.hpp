#pragma once

#include <functional>
#include <memory>

#include "arguments.hpp"
#include "companions.hpp"
#include "each_tensor.hpp"
#include "lnorm/io/tensor_source.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/measure/stats.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm::app {

// Tensors that are normalized to be looked at: rows and results go past an observer, and nowhere else.
class ObservedRows : public Companions {
 public:
  // lists_rows: the option by which every row is listed, rows of no elements too; empty if none is given.
  explicit ObservedRows(const Arguments& arguments, std::string_view lists_rows = {});

  // Throws Error if the tensor cannot be normalized so.
  Plan check(const TensorInfo& x, const InputName& name);

  // observer: for the plan of this tensor; it outlives the loop.
  using MakeObserver = std::function<RowObserver&(const Plan& plan)>;
  void run(std::unique_ptr<TensorSource> input, const InputName& name, TensorWork& work,
           const MakeObserver& observer);

  // Tells which tensors and steps there are.
  void describe(Stats& stats) const;

 private:
  const LayerNormOptions& options_;
  bool rounds_sum_;
  std::string_view lists_rows_;
  const Backend& backend_;
};

}  // namespace lnorm::app
