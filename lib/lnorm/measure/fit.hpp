#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lnorm/core/dtype.hpp"

namespace lnorm {

// actual = scale expected + offset
struct Fit {
  double scale = 1;
  double offset = 0;

  bool is_identity() const noexcept { return scale == 1 && offset == 0; }
  bool operator==(const Fit&) const = default;

  // Whether it leaves no more of pairs than this bound. Pairs of which neither is finite are left out.
  bool explains(const double* actual, const double* expected, std::int64_t count,
                double bound) const noexcept;
};

// The least squares fit to pairs, each number the shortest decimal within four of its standard errors and a quarter of the
// spacing of dtype, that of actual, at the greatest. Nothing where fewer than 8 different finite values are on a side.
std::optional<Fit> fit_of(std::vector<double> actual, std::vector<double> expected, DType dtype);

}  // namespace lnorm
