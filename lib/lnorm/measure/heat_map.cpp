#include "lnorm/measure/heat_map.hpp"

#include <algorithm>
#include <cmath>

namespace lnorm {

namespace {

struct Found {
  double sum = 0;
  double greatest = 0;  // |x|
};

// Sums finite elements; the sum of others is not finite. There are four sums, since each addition waits for the one before it.
Found found_in(std::span<const double> elements) {
  double sums[4] = {};
  double greatest = 0;
  std::size_t i = 0;
  for (; i + 4 <= elements.size(); i += 4) {
    const double* const four = &elements[i];
    for (std::size_t k = 0; k < 4; ++k) sums[k] += four[k];
    greatest = std::max(greatest, std::max(std::max(std::fabs(four[0]), std::fabs(four[1])),
                                           std::max(std::fabs(four[2]), std::fabs(four[3]))));
  }
  for (; i < elements.size(); ++i) {
    sums[0] += elements[i];
    greatest = std::max(greatest, std::fabs(elements[i]));
  }
  return {(sums[0] + sums[1]) + (sums[2] + sums[3]), greatest};
}

}  // namespace

HeatMap::HeatMap(Partition rows, Partition columns) : Grid(rows, columns) {
  for (std::int64_t column = 0; column < columns.parts; ++column) {
    parts_of_column_.push_back(1 / static_cast<double>(columns.size(column)));
  }
}

HeatMap::Part HeatMap::part(std::int64_t first, std::int64_t count) const {
  Part part;
  part.map_ = this;
  part.clear(*this, first, count);
  return part;
}

void HeatMap::Part::add(std::int64_t row, std::int64_t first, std::span<const double> elements) {
  const std::int64_t grid_row = map_->rows().of(row);
  const double part_of_row = 1 / static_cast<double>(map_->rows().size(grid_row));
  Cell* const cells = cells_of(grid_row);
  for (std::int64_t column = map_->columns().of(first); !elements.empty(); ++column) {
    const std::int64_t end = map_->end_of(column);
    const auto here =
        elements.first(std::min(elements.size(), static_cast<std::size_t>(end - first)));
    const double part = part_of_row * map_->parts_of_column_[static_cast<std::size_t>(column)];
    const Found found = found_in(here);
    Cell& cell = cells[column];
    if (std::isfinite(found.sum)) {
      cell.sum += found.sum * part;
      cell.greatest = std::max(cell.greatest, found.greatest);
      cell.finite += std::ssize(here);
    } else {
      for (const double element : here) {
        if (std::isfinite(element)) {
          cell.sum += element * part;
          cell.greatest = std::max(cell.greatest, std::fabs(element));
          ++cell.finite;
        } else {
          ++cell.non_finite;
        }
      }
    }
    elements = elements.subspan(here.size());
    first = end;
  }
}

std::optional<double> HeatMap::mean(std::int64_t row, std::int64_t column) const {
  const Cell& found = cell(row, column);
  if (found.finite == 0) return {};
  return found.sum *
         (static_cast<double>(size_of_cell(row, column)) / static_cast<double>(found.finite));
}

std::optional<double> HeatMap::greatest(std::int64_t row, std::int64_t column) const {
  const Cell& found = cell(row, column);
  if (found.finite == 0) return {};
  return found.greatest;
}

}  // namespace lnorm
