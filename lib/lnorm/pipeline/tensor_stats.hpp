#pragma once

#include <optional>

#include "lnorm/io/tensor_source.hpp"
#include "lnorm/layout/mask.hpp"
#include "lnorm/measure/stats.hpp"
#include "lnorm/pipeline/plan.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Measures the input alone: reads it once, and finishes it. The plan is for rows that are whole and ordered.
// Means and variances of rows are those of kernel/moments.hpp. The result does not depend on the number of
// threads. Several ranks measure some rows each, where the source has random access; otherwise rank 0 measures all. Rank 0 gets
// the whole result, the others something. Throws Error.
// mask: of the elements that are measured; nothing: all are.
TensorStats measure_tensor(TensorSource& source, const Plan& plan, const RunOptions& options = {},
                           const std::optional<RowMask>& mask = {});

}  // namespace lnorm
