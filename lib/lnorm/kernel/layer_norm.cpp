#include "lnorm/kernel/layer_norm.hpp"

#include <hwy/cache_control.h>

#include <cstring>
#include <vector>

#include "lnorm/core/error.hpp"
#include "lnorm/core/non_finite.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/kernel/kernel_table.hpp"
#include "lnorm/kernel/row_normalizer.hpp"
#include "lnorm/kernel/simd.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kMaxItemSize = 16;

void each_row(const RowSetting& setting, const RowsIn& x, const RowsOut& y,
              const RowNumbersOut& stats) {
  // While a row is written, the next one is read, if a second-level cache has room for both.
  constexpr std::int64_t kTwoRows = std::int64_t{256} << 10;
  const std::int64_t bytes = x.row_length * static_cast<std::int64_t>(item_size(x.dtype));
  for (std::int64_t r = 0; r < x.rows; ++r) {
    RowsIn row = row_of(x, r);
    RowNormalizer normalizer(setting.of_row(row.first_row), sample_of(row),
                             [&](const auto& see) { see(row); });
    normalizer.sum_up();
    if (r + 1 < x.rows && 2 * bytes <= kTwoRows) row.to_next = bytes;
    normalizer.write(row, 0, row_of(y, x.row_length, r));
    normalizer.save(stats, static_cast<std::size_t>(r));
  }
}

// Rows of one element each, which is its own mean: the result of all finite ones is that of 0.
void single_elements(const RowSetting& setting, const RowsIn& x, const RowsOut& y) {
  alignas(8) const std::byte zero[kMaxItemSize] = {};
  alignas(8) std::byte encoded[kMaxItemSize];
  const RowsOut result{.data = encoded, .dtype = y.dtype, .saturates = y.saturates};
  each_row(setting, {zero, x.dtype, x.byte_order, 1, 1}, result, {});
  const double of_zero = element_of({encoded, y.dtype, std::endian::native, 1, 1}, 0).high;
  const RowsIn elements{x.data, x.dtype, x.byte_order, 1, x.rows};
  write_each(elements, y, [of_zero](std::int64_t, Number element) {
    return element.high - element.high == 0 ? of_zero : kNan;
  });
  if (of_zero == of_zero) return;
  // A NaN of float8 may have a sign, which a number does not keep.
  for_each_element(elements, [&](std::int64_t i, Number element) {
    const std::size_t size = item_size(y.dtype);
    if (element.high - element.high == 0)
      std::memcpy(y.data + static_cast<std::size_t>(i) * size, encoded, size);
  });
}

}  // namespace

void Backend::layer_norm(const RowsIn& x, const RowsOut& y, const Affine& affine,
                         const Formula& formula, const RowNumbersOut& stats) const {
  RowsOut out = y;
  // Steps find there what they go on with.
  out.non_temporal = goes_past_caches(x, y) && affine.steps().empty();
  const bool saves = stats.mean != nullptr || stats.rstd != nullptr || stats.variance != nullptr;
  const RowSetting setting{*this, x.dtype, y.dtype, x.row_length, affine, formula, saves};
  if (x.row_length == 1 && formula.has_mean() && !saves && table != nullptr &&
      affine.layout().rows.empty()) {
    single_elements(setting, x, out);
  } else if (table == nullptr || saves || !table->short_rows(setting, x, out)) {
    each_row(setting, x, out, stats);
  }
  if (out.non_temporal) hwy::FlushStream();  // it is there for other threads
}

void normalize_by(const Backend& backend, const GivenStatistics& given, const RowsIn& x,
                  const RowsOut& y, const Affine& affine, const Formula& formula,
                  std::int64_t offset) {
  RowSetting setting{backend, x.dtype, y.dtype, x.row_length, affine, formula};
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const RowsIn row = row_of(x, r);
    setting.first_number = affine.layout().first(row.first_row);
    RowNormalizer(setting, given.of(row.first_row)).write(row, offset, row_of(y, x.row_length, r));
  }
}

std::span<const Backend> backends() {
  static const std::vector<Backend> all = [] {
    std::vector<Backend> result = simd_backends();
    result.push_back({"portable", &portable_table()});
    result.push_back({"reference", nullptr});
    return result;
  }();
  return all;
}

const Backend& find_backend(std::string_view name) {
  for (const Backend& backend : backends()) {
    if (backend.name == name) return backend;
  }
  throw Error(
      concat("no kernel is named '", printable(name), "', expected one of ",
             joined(backends(), ", ", [](const Backend& backend) { return backend.name; })));
}

}  // namespace lnorm
