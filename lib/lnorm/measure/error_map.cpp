#include "lnorm/measure/error_map.hpp"

#include <algorithm>
#include <cmath>

namespace lnorm {

namespace {

void add_pair(const Chunk& actual, const Chunk& expected, std::int64_t i, Grid::Cell& cell) {
  const double a = actual.high[i];
  const double e = expected.high[i];
  const double difference = std::fabs((a - e) + (actual.low[i] - expected.low[i]));
  if (std::isfinite(difference) || (std::isfinite(a) && std::isfinite(e))) {
    cell.greatest = std::max(cell.greatest, difference);
    cell.sum += difference;
    ++cell.finite;
  } else if (a != e && !(std::isnan(a) && std::isnan(e))) {
    ++cell.non_finite;
  }
}

}  // namespace

ErrorMap::ErrorMap(std::int64_t rows, std::int64_t row_length, const Size& size)
    : Grid({rows, size.grid_rows}, {row_length, size.grid_columns}),
      bands_({rows, size.bands}, {row_length, 1}) {}

void ErrorMap::Part::clear(const ErrorMap& map, std::int64_t position, std::int64_t count) {
  map_ = &map;
  const std::int64_t length = map.columns().all;
  const std::int64_t first = position / length;
  const std::int64_t rows = (position + count - 1) / length - first + 1;
  cells_.clear(map, first, rows);
  bands_.clear(map.bands_, first, rows);
}

void ErrorMap::Part::add(std::int64_t position, const Chunk& actual, const Chunk& expected,
                         std::int64_t count) {
  const Partition& columns = map_->columns();
  std::int64_t row = position / columns.all;
  std::int64_t element = position % columns.all;
  for (std::int64_t i = 0; i < count; ++row, element = 0) {
    const std::int64_t row_stop = std::min(count, i + columns.all - element);
    Cell* const cells = cells_.cells_of(map_->rows().of(row));
    Cell& band = *bands_.cells_of(map_->band_rows().of(row));
    for (std::int64_t column = columns.of(element); i < row_stop; ++column) {
      const std::int64_t end = map_->end_of(column);
      const std::int64_t stop = std::min(row_stop, i + end - element);
      element = end;
      Cell here;
      for (; i < stop; ++i) add_pair(actual, expected, i, here);
      cells[column].append(here);
      band.append(here);
    }
  }
}

void ErrorMap::add(const Part& part) {
  Grid::add(part.cells_);
  bands_.add(part.bands_);
}

std::optional<double> ErrorMap::mean_of_band(std::int64_t number) const {
  const Cell& errors = band(number);
  if (errors.finite == 0) return {};
  return errors.sum / static_cast<double>(errors.finite);
}

}  // namespace lnorm
