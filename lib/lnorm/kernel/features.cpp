#include "lnorm/kernel/features.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "lnorm/core/chunk.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/simd.hpp"

namespace lnorm {

namespace {

// Some features of some rows.
class Strip {
 public:
  Strip(const RowsIn& x, std::int64_t first, std::int64_t count, FeatureStrip& strip)
      : x_(x), first_(first), count_(count), strip_(strip) {
    std::fill_n(strip_.shift, kFeatureStrip, kNan);
    bool all = false;
    Chunk chunk;
    for (std::int64_t r = 0; r < x.rows && !all; ++r) {
      load_chunk(part_of(row_of(x, r), first, count), 0, chunk);
      all = true;
      for (std::int64_t i = 0; i < count; ++i) {
        if (!std::isfinite(strip_.shift[i])) strip_.shift[i] = chunk.high[i];
        all = all && std::isfinite(strip_.shift[i]);
      }
    }
  }

  void sum_up(const KernelTable& table, bool leaves_out) {
    for (double* const sums :
         {strip_.sum, strip_.squares, strip_.absmax, strip_.zeros, strip_.non_finite}) {
      std::fill_n(sums, kFeatureStrip, 0.0);
    }
    std::fill_n(strip_.first_non_finite, kFeatureStrip, kInfinity);
    table.add_features(x_, first_, count_, leaves_out, strip_);
  }

  bool is_finite() const {
    return std::all_of(strip_.squares, strip_.squares + count_,
                       [](double squares) { return std::isfinite(squares); });
  }

  FeatureSums sums(std::int64_t i) const {
    if (!std::isfinite(strip_.squares[i])) return merged(first_ + i);
    FeatureSums sums;
    sums.non_finite = static_cast<std::int64_t>(strip_.non_finite[i]);
    if (sums.non_finite > 0) {
      sums.first_non_finite = x_.first_row + static_cast<std::int64_t>(strip_.first_non_finite[i]);
    }
    sums.finite = x_.rows - sums.non_finite;
    if (sums.finite == 0) return sums;
    const auto n = static_cast<double>(sums.finite);
    sums.mean = strip_.shift[i] + strip_.sum[i] / n;
    sums.squares = std::max(strip_.squares[i] - strip_.sum[i] * (strip_.sum[i] / n), 0.0);
    sums.absmax = strip_.absmax[i];
    sums.zeros = static_cast<std::int64_t>(strip_.zeros[i]);
    return sums;
  }

 private:
  // One feature, of which squares are beyond the range of doubles.
  FeatureSums merged(std::int64_t feature) const {
    FeatureSums sums;
    for (std::int64_t r = 0; r < x_.rows; ++r) {
      const double x = element_of(part_of(row_of(x_, r), feature, 1), 0).high;
      FeatureSums one;
      if (std::isfinite(x)) {
        one.mean = x;
        one.absmax = std::fabs(x);
        one.zeros = x == 0 ? 1 : 0;
        one.finite = 1;
      } else {
        one.non_finite = 1;
        one.first_non_finite = x_.first_row + r;
      }
      sums.append(one);
    }
    return sums;
  }

  const RowsIn& x_;
  std::int64_t first_;
  std::int64_t count_;
  FeatureStrip& strip_;
};

}  // namespace

void sum_features(const RowsIn& x, FeatureSums* sums, const Backend& backend) {
  const KernelTable& table = table_of(backend);
  const auto room = std::make_unique<FeatureStrip>();
  for (std::int64_t first = 0; first < x.row_length; first += kFeatureStrip) {
    const std::int64_t count = std::min(kFeatureStrip, x.row_length - first);
    Strip strip(x, first, count, *room);
    strip.sum_up(table, false);
    if (!strip.is_finite()) strip.sum_up(table, true);
    for (std::int64_t i = 0; i < count; ++i) sums[first + i] = strip.sums(i);
  }
}

}  // namespace lnorm
