#include "lnorm/diagnosis/estimates.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <vector>

#include "lnorm/core/text.hpp"

namespace lnorm {

namespace {

constexpr std::size_t kTerms = 3;

using Terms = std::array<double, kTerms>;

Terms terms_of(const ToldStatistics& row) { return {row.variance, 1, row.mean * row.mean}; }

bool are_enough(std::ptrdiff_t rows, std::size_t all) {
  return static_cast<double>(rows) >= kMostRows * static_cast<double>(all);
}

bool is_told(const EstimatedNumber& one) {
  return std::isfinite(one.number) && one.error > 0 && std::isfinite(one.error);
}

bool holds(double number, std::span<const EstimatedNumber> told) {
  return are_enough(std::ranges::count_if(told,
                                          [number](const EstimatedNumber& one) {
                                            return is_told(one) && std::fabs(one.number - number) <=
                                                                       kWithinErrors * one.error;
                                          }),
                    told.size());
}

// Equal rows have equal errors: so much larger is the error of their mean.
double repetition(std::span<const EstimatedNumber> told) {
  std::set<double> distinct;
  double count = 0;
  for (const EstimatedNumber& one : told) {
    if (!std::isfinite(one.number)) continue;
    distinct.insert(one.number);
    ++count;
  }
  return std::sqrt(count / static_cast<double>(std::max<std::size_t>(1, distinct.size())));
}

struct SquareFit {
  Terms numbers{};
  Terms errors{};
  bool holds = false;  // in so many rows
  double sum = 0;      // of squares, in parts of the errors
};

// The numbers that are free (a bit each); the others are as given. Nothing where the rows do not tell them apart.
std::optional<SquareFit> fit_square(std::span<const ToldStatistics> rows, const Terms& given,
                                    unsigned free) {
  std::array<std::size_t, kTerms> place{};
  std::size_t n = 0;
  for (std::size_t k = 0; k < kTerms; ++k) {
    if ((free >> k & 1) != 0) place[n++] = k;
  }
  // Columns: the equations, what they give, and the unit matrix, which becomes the inverse.
  std::array<std::array<double, 2 * kTerms + 1>, kTerms> a{};
  for (const ToldStatistics& row : rows) {
    const Terms terms = terms_of(row);
    const double part = 1 / (row.square.error * row.square.error);
    if (!std::isfinite(part * row.square.number)) continue;
    double left = row.square.number;
    for (std::size_t k = 0; k < kTerms; ++k) left -= (free >> k & 1) != 0 ? 0 : given[k] * terms[k];
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) a[i][j] += terms[place[i]] * terms[place[j]] * part;
      a[i][kTerms] += terms[place[i]] * left * part;
    }
  }
  for (std::size_t i = 0; i < n; ++i) a[i][kTerms + 1 + i] = 1;
  Terms sizes{};
  for (std::size_t i = 0; i < n; ++i) sizes[i] = a[i][i];
  for (std::size_t i = 0; i < n; ++i) {
    if (!(a[i][i] > 1e-12 * sizes[i])) return {};
    for (std::size_t j = 0; j < n; ++j) {
      const double by = a[j][i] / a[i][i];
      for (std::size_t c = 0; j != i && c < a[j].size(); ++c) a[j][c] -= by * a[i][c];
    }
  }
  SquareFit result{.numbers = given};
  for (std::size_t i = 0; i < n; ++i) {
    result.numbers[place[i]] = a[i][kTerms] / a[i][i];
    result.errors[place[i]] = std::sqrt(a[i][kTerms + 1 + i] / a[i][i]);
  }
  std::ptrdiff_t within = 0;
  for (const ToldStatistics& row : rows) {
    const Terms terms = terms_of(row);
    double off = row.square.number;
    for (std::size_t k = 0; k < kTerms; ++k) off -= result.numbers[k] * terms[k];
    off /= row.square.error;
    within += std::fabs(off) <= kWithinErrors ? 1 : 0;
    result.sum += off * off;
  }
  result.holds = are_enough(within, rows.size());
  return result;
}

void tell(EstimatedNumber& found) {
  const double most = 3 * found.error;
  const bool is_zero = std::fabs(found.number) <= most;
  found.plain = is_zero ? 0 : std::strtod(shortest_text(found.number, most).c_str(), nullptr);
}

}  // namespace

std::optional<EstimatedNumber> number_of(std::span<const EstimatedNumber> told) {
  double parts = 0;
  double sum = 0;
  for (const EstimatedNumber& one : told) {
    if (!is_told(one)) continue;
    parts += 1 / (one.error * one.error);
    sum += one.number / (one.error * one.error);
  }
  if (!(parts > 0)) return {};
  const EstimatedNumber result{sum / parts, repetition(told) / std::sqrt(parts)};
  return holds(result.number, told) ? std::optional(result) : std::nullopt;
}

StatisticEstimates estimate_statistics(std::span<const ToldStatistics> rows, double eps,
                                       bool has_mean) {
  StatisticEstimates result;
  if (rows.empty()) return result;
  std::vector<EstimatedNumber> factors;
  for (const ToldStatistics& row : rows) factors.push_back(row.mean_factor);
  if (has_mean) result.mean_factor = number_of(factors);
  if (result.mean_factor && !holds(1, factors)) tell(*result.mean_factor);
  const Terms given{1, eps, 0};
  // The fewest numbers that are not the formula's, and of these the nearest.
  std::array<unsigned, 8> free{0, 1, 2, 4, 3, 5, 6, 7};
  std::optional<SquareFit> plain;
  unsigned needed = 0;
  for (const unsigned some : free) {
    if ((!has_mean && (some & 4) != 0) ||
        static_cast<std::size_t>(std::popcount(some)) >= rows.size())
      continue;
    if (plain && std::popcount(some) > std::popcount(needed)) break;
    const auto found = fit_square(rows, given, some);
    if (!found || !found->holds || (plain && found->sum >= plain->sum)) continue;
    plain = found;
    needed = some;
  }
  if (!plain) return result;
  const auto all = fit_square(rows, given, has_mean ? 7 : 3);
  std::vector<EstimatedNumber> squares;
  for (const ToldStatistics& row : rows) squares.push_back(row.square);
  const double repeated = repetition(squares);
  const auto number = [&](std::size_t k) -> std::optional<EstimatedNumber> {
    const bool is_needed = (needed >> k & 1) != 0;
    if (!is_needed && (!all || rows.size() <= kTerms)) return {};
    const SquareFit& from = is_needed ? *plain : *all;
    EstimatedNumber found{from.numbers[k], repeated * from.errors[k]};
    if (is_needed) tell(found);
    return found;
  };
  // f and k may be said only where the rows tell them apart.
  constexpr std::size_t kSure = 8;
  constexpr double kApart = 0.01;
  result.is_sure = all && rows.size() >= kSure && repeated * all->errors[0] < kApart &&
                   (!has_mean || repeated * all->errors[2] < kApart);
  result.variance_factor = number(0);
  result.eps = number(1);
  if (has_mean) result.mean_square_factor = number(2);
  return result;
}

}  // namespace lnorm
