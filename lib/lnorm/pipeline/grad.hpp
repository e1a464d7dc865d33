#pragma once

#include "lnorm/core/tensor_info.hpp"
#include "lnorm/io/tensor_sink.hpp"
#include "lnorm/kernel/affine.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/grad_plan.hpp"
#include "lnorm/pipeline/gradient_rows.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Where the gradients go that the plan asks for.
struct GradSinks {
  TensorSink* dx = nullptr;
  TensorSink* dweight = nullptr;
  TensorSink* dbias = nullptr;
};

// The backward pass as kernel/backward.hpp and kernel/parameter_gradients.hpp define it, in fixed memory and a few
// numbers a column: rows from the sources through the kernel to dx, then dweight and dbias. weight: empty for 1.
// parameters: what dweight and dbias are; in the shape of a weight without dimensions they are sums over all
// columns as well. Finishes sources and sinks. Several ranks do a part each, where sources and dx have random access; otherwise
// rank 0 does all. Throws Error or ClosedPipe.
void run_grad(const GradSources& sources, const GradPlan& plan, const Backend& backend,
              const AffineTerm& weight, const TensorInfo& parameters, const GradSinks& sinks,
              const RunOptions& options = {});

}  // namespace lnorm
