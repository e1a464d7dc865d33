#pragma once

#include <optional>
#include <string_view>

#include "lnorm/measure/error_stats.hpp"

namespace lnorm {

// A figure is a number that reports say of the errors of all pairs together. The table has the order of JSON and of pages.
struct ErrorFigure {
  std::string_view key;     // in JSON
  std::string_view column;  // in CSV, where those that came late stand last
  std::string_view words;   // on a page
  std::string_view label;   // on its line of text
  std::string_view unit;
  std::optional<double> (ErrorStats::*of)() const;
  int line;
  int digits;  // significant ones
  bool came_late = false;
};
inline constexpr int kErrorLines = 3;
inline constexpr ErrorFigure kErrorFigures[] = {
    {"mean", "mean_error", "mean error", "mean error: ", "", &ErrorStats::mean, 0, 3},
    {"mean_absolute", "mean_absolute_error", "mean absolute error", ", absolute: ", "",
     &ErrorStats::mean_absolute, 0, 3},
    {"mean_toward_zero", "mean_error_toward_zero", "mean error toward zero",
     "mean error toward zero: ", "", &ErrorStats::mean_toward_zero, 1, 3, true},
    {"mean_away_from_zero", "mean_error_away_from_zero", "mean error away from zero",
     ", away from zero: ", "", &ErrorStats::mean_away_from_zero, 1, 3, true},
    {"root_mean_square", "root_mean_square_error", "root mean square error",
     ", root mean square: ", "", &ErrorStats::root_mean_square, 0, 3},
    {"cosine", "cosine", "cosine similarity", "cosine: ", "", &ErrorStats::cosine, 2, 12},
    {"sqnr_db", "sqnr_db", "SQNR in dB", ", SQNR: ", " dB", &ErrorStats::sqnr, 2, 4},
};

}  // namespace lnorm
