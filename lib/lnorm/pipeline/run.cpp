#include "lnorm/pipeline/run.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace lnorm {

void run(TensorSource& source, const Plan& plan, const Transform& transform,
         std::span<RowObserver* const> observers, TensorSink* sink, const Progress& progress) {
  const auto row_length = static_cast<std::size_t>(plan.row_length);
  const std::size_t in_row_bytes = row_length * item_size(plan.in);
  const std::size_t out_row_bytes = row_length * item_size(plan.out);
  std::vector<std::byte> in;
  std::vector<std::byte> out;
  std::vector<double> mean;
  std::vector<double> rstd;
  // Rows of no elements still have a mean, which is not a number, for those who ask.
  const std::int64_t rows = row_length > 0 || plan.stats ? plan.rows : 0;

  for (std::int64_t first = 0; first < rows; first += plan.block_rows) {
    const std::int64_t count = std::min(plan.block_rows, rows - first);
    const auto block_rows = static_cast<std::size_t>(count);
    mean.assign(plan.stats ? block_rows : 0, std::numeric_limits<double>::quiet_NaN());
    rstd = mean;
    source.read(in, block_rows * in_row_bytes);
    out.resize(block_rows * out_row_bytes);
    const RowsIn x{in.data(), plan.in, source.info().byte_order, count, plan.row_length};
    const RowsOut y{out.data(), plan.out};
    if (row_length > 0) {
      transform(x, y, {plan.stats ? mean.data() : nullptr, plan.stats ? rstd.data() : nullptr});
    }
    for (RowObserver* observer : observers) observer->see({first, x, y, mean, rstd});
    if (sink != nullptr) sink->write(out);
    if (progress) progress((first + count) * plan.row_length);
  }
  source.finish();
  for (RowObserver* observer : observers) observer->finish();
  if (sink != nullptr) sink->finish();
}

}  // namespace lnorm
