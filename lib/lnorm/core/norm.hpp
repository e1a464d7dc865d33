#pragma once

#include <cstdint>
#include <string_view>

namespace lnorm {

// A norm divides the elements of a row by s, the root of their variance (and eps). One with a mean subtracts that first; one without
// takes 0 for it, so that its variance is the mean of squares. A norm is a row of kNorms: whatever is to know of it reads that.
struct Norm {
  bool has_mean;
  std::string_view name;
  // In reports: "normalized along" begins with the prefix, and x - mean is the deviation. The variance has a name, a letter and a
  // definition; it is the sum of the squares by n - ddof, and 0 where all elements are as constant says.
  std::string_view prefix;
  std::string_view deviation;
  std::string_view variance;
  std::string_view letter;
  std::string_view definition;
  std::string_view squares;
  std::string_view constant;
};

inline constexpr Norm kNorms[] = {
    {true, "layer norm", "", "(x - mean)", "variance", "var", "var", "sum of squared deviations",
     "the same"},
    {false, "RMS norm", "RMS-", "x", "mean of squares", "ms", "mean(x^2)", "sum of squares", "0"},
};

// Where eps keeps s from 0: s = sqrt(var + eps), sqrt(var) + eps, or max(sqrt(var), eps). Each place is a row of kEpsPlaces.
enum class EpsOn { variance, std, max };
struct EpsPlace {
  std::string_view name;
  std::string_view prefix;  // before "variance"
  // s, in words: what stands before the variance, between it and eps, and behind.
  std::string_view divisor[3];
};
inline constexpr EpsPlace kEpsPlaces[] = {
    {"variance", "on the ", {"sqrt(", " + ", ")"}},
    {"std", "on the root of the ", {"(sqrt(", ") + ", ")"}},
    {"max", "as the least root of the ", {"max(sqrt(", "), ", ")"}}};

// How a row is normalized, weight and bias apart: formula-inl.hpp.
struct Formula {
  double eps = 1e-5;
  EpsOn eps_on = EpsOn::variance;
  std::int64_t ddof = 0;
  bool rms = false;  // which of kNorms

  bool operator==(const Formula&) const = default;
  const Norm& norm() const noexcept { return kNorms[rms ? 1 : 0]; }
  bool has_mean() const noexcept { return norm().has_mean; }
  // What the sum of the squares of n elements is divided by.
  std::int64_t freedom(std::int64_t n) const noexcept { return n - ddof; }
  double freedom(double n) const noexcept { return n - static_cast<double>(ddof); }
  const EpsPlace& eps_place() const noexcept { return kEpsPlaces[static_cast<int>(eps_on)]; }
};

}  // namespace lnorm
