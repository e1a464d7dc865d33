#pragma once

#include <optional>

#include "lnorm/io/tensor_source.hpp"
#include "lnorm/layout/mask.hpp"
#include "lnorm/measure/features.hpp"
#include "lnorm/pipeline/executor.hpp"
#include "lnorm/pipeline/plan.hpp"

namespace lnorm {

// Measures every feature in one pass: the elements of a row over all rows of the plan, in 56 bytes for each. Blocks of rows do
// not depend on the number of threads. Of features beyond 2^20 there are several passes, and a pipe is spooled. Finishes
// the source. Rank 0 gets the whole result. mask: of the elements that are measured; nothing: all are. Throws Error.
FeatureStats measure_features(TensorSource& source, const Plan& plan, const RunOptions& options,
                              const std::optional<RowMask>& mask = {});

}  // namespace lnorm
