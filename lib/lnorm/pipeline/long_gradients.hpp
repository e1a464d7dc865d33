#pragma once

#include <memory>

#include "lnorm/kernel/parameter_gradients.hpp"
#include "lnorm/layout/row_sink.hpp"
#include "lnorm/pipeline/gradient_rows.hpp"
#include "lnorm/pipeline/run.hpp"

namespace lnorm {

// For the columns that are this rank's.
std::unique_ptr<ColumnGradients> long_columns(const GradPlan& plan, const Ranks& ranks);

// The backward pass of rows that go in parts (plan.rows.route.in_parts), as run_long_rows takes them forward, where ranks
// have parts each. dx and columns may be null: they are not wanted.
void long_gradients(GradientRows& rows, const GradPlan& plan, const GradientSetting& setting,
                    RowSink* dx, ColumnGradients* columns, const RunOptions& options);

// The same rows once more, several at once, those of this rank. rows and options must outlive it.
RowReplay long_row_replay(GradientRows& rows, const GradPlan& plan, const RunOptions& options);

}  // namespace lnorm
