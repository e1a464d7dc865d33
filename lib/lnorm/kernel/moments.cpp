#include "lnorm/kernel/moments.hpp"

#include <limits>
#include <optional>

#include "lnorm/kernel/passes.hpp"
#include "lnorm/kernel/row_normalizer.hpp"

namespace lnorm {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Whether plain sums decide all that a row normalizer would find.
bool take_plain(const Sums& sums, std::int64_t n, std::int64_t ddof, Moments& result) {
  const auto centered = centered_sums(sums, 0, n, false, plain_growth(n));
  if (!centered) return false;
  const auto sum = centered->rounded_sum();
  const auto mean = centered->rounded_mean();
  const auto variance = centered->rounded_variance(n - ddof);
  if (!sum || !mean || !variance) return false;
  result.sum = *sum;
  result.mean = *mean;
  result.variance = *variance;
  return true;
}

Range range_of(const Passes* passes, const RowsIn& row) {
  return passes != nullptr ? passes->range(row) : range_one_by_one(row);
}

Moments of_range(const Range& range) {
  const bool has_number = range.min <= range.max;
  return {.non_finite = range.non_finite,
          .sum = kNan,
          .mean = kNan,
          .variance = kNan,
          .min = has_number ? range.min : kNan,
          .max = has_number ? range.max : kNan};
}

void take_sums(RowNormalizer& normalizer, Moments& result) {
  normalizer.sum_up();
  result.sum = normalizer.sum();
  result.mean = normalizer.mean();
  result.variance = normalizer.variance();
}

constexpr Moments kNothing{.mean = kNan, .variance = kNan, .min = kNan, .max = kNan};

Moments row_moments(const RowSetting& setting, const RowsIn& row) {
  if (row.row_length == 0) return kNothing;
  const Passes* const passes = setting.kernel.passes;
  const Range range = range_of(passes, row);
  Moments result = of_range(range);
  if (range.non_finite > 0) return result;
  std::optional<Sums> plain;
  if (passes != nullptr && is_plain(row.dtype, range)) {
    plain = passes->plain_sums(row, plain_exponent(range));
  }
  if (!plain || !take_plain(*plain, row.row_length, setting.formula.ddof, result)) {
    RowNormalizer normalizer(setting, sample_of(row), [&](const auto& see) { see(row); });
    if (plain) normalizer.take_plain(*plain);
    take_sums(normalizer, result);
  }
  return result;
}

}  // namespace

void measure_moments(const RowsIn& x, std::int64_t ddof, Moments* moments, const Kernel& kernel) {
  const Affine affine;
  const Formula formula{.ddof = ddof};
  const RowSetting setting{kernel, x.dtype, DType::float64, x.row_length, affine, formula, true};
  for (std::int64_t r = 0; r < x.rows; ++r) moments[r] = row_moments(setting, row_of(x, r));
}

Moments measure_moments(const ReadRow& row, DType dtype, std::int64_t n, std::int64_t ddof,
                        const Kernel& kernel) {
  if (n == 0) return kNothing;
  const Affine affine;
  const Formula formula{.ddof = ddof};
  const RowSetting setting{kernel, dtype, DType::float64, n, affine, formula, true, true};
  Range range;
  std::optional<RowNormalizer> normalizer;
  Sums sums;
  row([&](const RowsIn& part) {
    if (!normalizer) normalizer.emplace(setting, sample_of(part), row);
    range += range_of(kernel.passes, part);
    if (normalizer->wants_sums()) sums += normalizer->sums(part);
  });
  Moments result = of_range(range);
  if (range.non_finite == 0) {
    if (normalizer->wants_sums()) normalizer->take(sums);
    take_sums(*normalizer, result);
  }
  return result;
}

}  // namespace lnorm
