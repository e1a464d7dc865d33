#pragma once

#include <span>

#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/pipeline/row_writer.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// Layer normalization of rows that are longer than memory should hold (plan.route.in_parts), with the same
// bits as if they were held: in two passes over the source, more where a row's values or a bias ask for
// it. Rows that lie one after another go one by one; those that lie among each other, as the columns of
// a matrix do, in groups. Parts of them are read and computed by several threads. Memory does not grow
// with the rows. A source, or a sink, that has no random access where they are needed is spooled. The
// observers see mean and rstd, of a group at a time, and no elements; what sum is for it gets. Several ranks do some parts of
// each row, where source and sinks have random access; otherwise rank 0 does all. It alone has observers. Throws Error or
// ClosedPipe.
void run_long_rows(TensorSource& source, const Plan& plan, const Backend& backend,
                   const Affine& affine, std::span<RowObserver* const> observers, TensorSink& sink,
                   const RunOptions& options = {}, SumWriter* sum = nullptr);

}  // namespace lnorm
