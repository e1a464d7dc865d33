#include "lnorm/measure/error_map.hpp"

#include <algorithm>
#include <cmath>

namespace lnorm {

namespace {

// Not a number where there is none.
double error_of(const Chunk& actual, const Chunk& expected, std::int64_t i) {
  const double a = actual.high[i];
  const double e = expected.high[i];
  const double difference = std::fabs((a - e) + (actual.low[i] - expected.low[i]));
  if (std::isfinite(difference)) return difference;
  const bool are_equal = a == e || (std::isnan(a) && std::isnan(e));
  return are_equal ? 0 : std::isfinite(a) && std::isfinite(e) ? difference : std::nan("");
}

}  // namespace

void ErrorMap::Errors::add(double error) noexcept {
  if (std::isnan(error)) {
    ++non_finite;
    return;
  }
  greatest = std::max(greatest, error);
  sum += error;
}

void ErrorMap::Errors::append(const Errors& next) noexcept {
  greatest = std::max(greatest, next.greatest);
  sum += next.sum;
  non_finite += next.non_finite;
}

ErrorMap::ErrorMap(std::int64_t rows, std::int64_t row_length, const Size& size)
    : rows_(rows, size.grid_rows),
      columns_(row_length, size.grid_columns),
      bands_(rows, size.bands),
      column_begins_(columns_.begins()),
      cells_(static_cast<std::size_t>(rows_.parts * columns_.parts)),
      errors_(static_cast<std::size_t>(bands_.parts)) {}

void ErrorMap::Part::clear(const ErrorMap& map, std::int64_t position, std::int64_t count) {
  map_ = &map;
  const std::int64_t first = position / map.columns_.all;
  const std::int64_t last = (position + count - 1) / map.columns_.all;
  first_grid_row_ = map.rows_.of(first);
  first_band_ = map.bands_.of(first);
  const std::int64_t grid_rows = map.rows_.of(last) - first_grid_row_ + 1;
  cells_.assign(static_cast<std::size_t>(grid_rows * map.columns_.parts), {});
  bands_.assign(static_cast<std::size_t>(map.bands_.of(last) - first_band_ + 1), {});
}

void ErrorMap::Part::add(std::int64_t position, const Chunk& actual, const Chunk& expected,
                         std::int64_t count) {
  const Partition& columns = map_->columns_;
  std::int64_t row = position / columns.all;
  std::int64_t element = position % columns.all;
  for (std::int64_t i = 0; i < count; ++row, element = 0) {
    const std::int64_t row_stop = std::min(count, i + columns.all - element);
    Errors* const cells = cells_.data() + (map_->rows_.of(row) - first_grid_row_) * columns.parts;
    Errors& band = bands_[static_cast<std::size_t>(map_->bands_.of(row) - first_band_)];
    for (std::int64_t column = columns.of(element); i < row_stop; ++column) {
      const std::int64_t end = map_->column_begins_[static_cast<std::size_t>(column) + 1];
      const std::int64_t stop = std::min(row_stop, i + end - element);
      element = end;
      Errors here;
      for (; i < stop; ++i) here.add(error_of(actual, expected, i));
      cells[column].append(here);
      band.append(here);
    }
  }
}

void ErrorMap::add(const Part& part) {
  Errors* cell = cells_.data() + part.first_grid_row_ * columns_.parts;
  for (const Errors& errors : part.cells_) (cell++)->append(errors);
  Errors* band = errors_.data() + part.first_band_;
  for (const Errors& errors : part.bands_) (band++)->append(errors);
}

std::optional<double> ErrorMap::mean_of_band(std::int64_t number) const {
  const Errors& errors = band(number);
  const std::int64_t pairs = bands_.size(number) * columns_.all - errors.non_finite;
  if (pairs == 0) return {};
  return errors.sum / static_cast<double>(pairs);
}

}  // namespace lnorm
