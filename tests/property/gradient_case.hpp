#pragma once

#include "lnorm/kernel/backward.hpp"
#include "property/data.hpp"
#include "support/gradient_oracle.hpp"

// Rows with gradients, for the backward pass and for its oracle.
namespace property {

// One row and all that its dx depends on.
struct GradientCase {
  Data x;
  Data dy;
  Data weight{lnorm::DType::float64, {}, {}};  // of every element, or one for all, or none
  bool plus_one = false;
  lnorm::Formula formula = {};
  lnorm::DType dx = lnorm::DType::float64;
  std::optional<oracle::Saved> saved = {};

  std::int64_t length() const { return static_cast<std::int64_t>(x.numbers.size()); }
};

std::string describe(const GradientCase& c);

oracle::GradientRow oracle_of(const GradientCase& c);
std::optional<lnorm::SavedStatistics> saved_of(const GradientCase& c);

// What the kernel makes of the row in native byte order, or with x and dy in the other one.
std::vector<double> backward(const lnorm::Backend& backend, const GradientCase& c,
                             bool is_swapped = false);

// Holds every kernel's dx of the elements first, first + step, ... against the exact one. The reference leaves out
// rows that are too long for it.
void check(const GradientCase& c, std::size_t first = 0, std::size_t step = 1);
// Holds dx, which some way through the library gave, against the exact one.
void check_dx(const GradientCase& c, const std::vector<double>& dx);

}  // namespace property
