#include "lnorm/kernel/row_errors.hpp"

#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/layer_norm.hpp"
#include "lnorm/kernel/simd.hpp"

namespace lnorm {

std::span<const double> decode(const Backend& backend, const RowsIn& row,
                               std::vector<double>& buffer) {
  constexpr std::size_t kRoom = 64;  // for whole groups of vectors
  const auto count = static_cast<std::size_t>(row.row_length);
  if (buffer.size() < count + kRoom) buffer.resize(count + kRoom);
  table_of(backend).decode(row, buffer.data());
  return std::span(buffer).first(count);
}

RowSizes row_sizes(const Backend& backend, const double* x, std::int64_t count, bool about_zero) {
  return table_of(backend).row_sizes(x, count, about_zero);
}

RowScreen screen_row(const Backend& backend, const RowLine& line, double limit,
                     const LastRounding& rounding, const ScreenedRow& row) {
  return table_of(backend).screen_row(line, limit, rounding, row);
}

}  // namespace lnorm
