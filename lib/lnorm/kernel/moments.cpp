#include "lnorm/kernel/moments.hpp"

#include <algorithm>
#include <optional>

#include "lnorm/core/non_finite.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/plain_moments.hpp"
#include "lnorm/kernel/row_normalizer.hpp"

namespace lnorm {

namespace {

Range range_of(const KernelTable* table, const RowsIn& row) {
  return table != nullptr ? table->range(row) : range_one_by_one(row);
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
  const Range range = range_of(setting.backend.table, row);
  Moments result = of_range(range);
  if (range.non_finite > 0) return result;
  RowNormalizer normalizer(setting, sample_of(row), [&](const auto& see) { see(row); });
  take_sums(normalizer, result);
  return result;
}

}  // namespace

void measure_moments(const RowsIn& x, std::int64_t ddof, Moments* moments, const Backend& backend) {
  const Affine affine;
  const Formula formula{.ddof = ddof};
  const RowSetting setting{backend, x.dtype, DType::float64, x.row_length, affine, formula, true};
  constexpr std::int64_t kAtOnce = 64;
  const bool is_parted = x.dtype == DType::float64 && x.byte_order == std::endian::native &&
                         x.row_length <= PartedSums::kMaxLength;
  const bool tries_plain =
      backend.table != nullptr && (may_be_plain(x.dtype) || is_parted) && x.row_length > 0;
  for (std::int64_t first = 0; first < x.rows; first += kAtOnce) {
    RowsIn rows = row_of(x, first);
    rows.rows = std::min(kAtOnce, x.rows - first);
    bool decided[kAtOnce] = {};
    if (tries_plain)
      backend.table->plain_moments(rows, x.row_length - ddof, moments + first, decided);
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      if (!decided[r]) moments[first + r] = row_moments(setting, row_of(rows, r));
    }
  }
}

Moments measure_moments(const ReadRow& row, DType dtype, std::int64_t n, std::int64_t ddof,
                        const Backend& backend) {
  if (n == 0) return kNothing;
  const Affine affine;
  const Formula formula{.ddof = ddof};
  const RowSetting setting{backend, dtype, DType::float64, n, affine, formula, true, true};
  Range range;
  std::optional<RowNormalizer> normalizer;
  Sums sums;
  row([&](const RowsIn& part) {
    if (!normalizer) normalizer.emplace(setting, sample_of(part), row);
    range += range_of(backend.table, part);
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
