#include "lnorm/kernel/softmax.hpp"

#include <cmath>
#include <optional>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/number.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/softmax_row.hpp"

// There are three precisions, as for layer normalization. The kernel table computes in doubles where y is narrower than
// float64, and in double-doubles where it is float64. The resolver decides what that leaves undecided, and all of 64-bit
// integers and pairs, in double-doubles and in integers (exact). softmax_bounds.hpp has the bounds.
namespace lnorm {

namespace {

ReadRow reader(const RowsIn& row) {
  return [&row](const auto& see) { see(row); };
}

// Decides single elements; sums the row up when the first one comes.
class RowResolver final : public Resolver {
 public:
  RowResolver(const RowsIn& row, Number max, double scale, DType dtype)
      : row_(row), max_(max), scale_(scale), dtype_(dtype) {}

  double resolve(std::int64_t, Number x) const override {
    if (!wide_) wide_.emplace(reader(row_), row_.row_length, max_, scale_);
    return wide_->result(x, dtype_);
  }

 private:
  const RowsIn& row_;
  Number max_;
  double scale_;
  DType dtype_;
  mutable std::optional<SoftmaxRow> wide_;
};

}  // namespace

void softmax(const RowsIn& x, const RowsOut& y, double scale, const Backend& backend) {
  // Then a result that does not round to zero is far from the ends of the range of doubles, scaled or not.
  const bool is_moderate = scale >= 0x1p-300 && scale <= 0x1p300;
  const KernelTable* const table = has_low(x.dtype) ? nullptr : backend.table;
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const RowsIn row = row_of(x, r);
    const RowsOut out = row_of(y, x.row_length, r);
    const Number max =
        table != nullptr ? Number{table->largest(row)} : largest_element(reader(row));
    const RowResolver resolver(row, max, scale, y.dtype);
    if (!std::isfinite(max.high)) {
      fill(out, row.row_length, kNan);
    } else if (table != nullptr && y.dtype == DType::float64) {
      table->double_double_softmax(row, max.high, out, resolver);
    } else if (table != nullptr && is_moderate) {
      table->double_softmax(row, max.high, scale, out, resolver);
    } else {
      write_each(row, out,
                 [&](std::int64_t i, Number element) { return resolver.resolve(i, element); });
    }
  }
}

}  // namespace lnorm
