#include "lnorm/report/ulp_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

namespace {

bool has_fractions(const Comparison& comparison) {
  return comparison.ulps && comparison.ulps->value.is_real;
}

std::string label_of(std::size_t number) {
  if (number == 0) return "0";
  if (number + 1 == UlpCounts::kClasses) return "beyond";
  constexpr std::size_t kMany = 22;  // from here on powers are easier to read
  if (number > kMany) return concat("<= 2^", number - 2);
  return "<= " + value_text(UlpCounts::bound(number));
}

// The classes up to the last one that is not empty. Of steps none is at most half an ulp.
std::vector<std::size_t> classes_of(const Comparison& comparison) {
  std::vector<std::size_t> classes;
  for (std::size_t i = 0; i < comparison.ulp_counts.size(); ++i) {
    if (i != 1 || has_fractions(comparison)) classes.push_back(i);
  }
  return classes;
}

// A bar of a part of the width; what is there shows.
std::string bar(double share, std::size_t width, bool utf8) {
  constexpr std::string_view kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (share == 0) return "";
  const double length = share * static_cast<double>(width);
  std::string text;
  if (!utf8) {
    text.append(static_cast<std::size_t>(std::max(1.0, std::round(length))), '#');
    return text;
  }
  const auto eighths = static_cast<std::size_t>(std::max(1.0, std::round(8 * length)));
  for (std::size_t i = 0; i < eighths / 8; ++i) text += "█";
  return text.append(kEighths[eighths % 8]);
}

}  // namespace

std::string ulps_text(Ulps ulps, DType dtype) {
  if (ulps.is_real) return rounded_text(ulps.value(), 3);
  if (is_floating(dtype) && ulps.rank == kNoUlpDistance) return "beyond";
  return std::to_string(ulps.rank);
}

std::string ulp_shares_text(const Comparison& comparison) {
  constexpr std::size_t kNear = 5;  // classes, up to 4 ulp
  const UlpCounts& counts = comparison.ulp_counts;
  const std::int64_t all = comparison.errors.pairs();
  std::string text;
  std::int64_t within = 0;
  for (const std::size_t i : classes_of(comparison)) {
    within += counts.count(i);
    if (i >= kNear && i + 1 < counts.size()) continue;
    if (i + 1 == UlpCounts::kClasses) {
      return concat(text, ", ", percentage_text(counts.count(i), all), " beyond");
    }
    text += concat(text.empty() ? "" : ", ", label_of(i), " in ",
                   within == all ? "all" : percentage_text(within, all));
  }
  return text;
}

std::string ulp_histogram_text(std::string_view title, const Comparison& comparison,
                               const Style& style) {
  const UlpCounts& counts = comparison.ulp_counts;
  const std::int64_t all = comparison.errors.pairs();
  std::string text = style.heading(title) + concat(": ", counted(all, "pair"), '\n');
  struct Line {
    std::string label;
    std::string count;
    std::string share;
    std::int64_t elements;
  };
  std::vector<Line> lines;
  std::size_t label_width = 0;
  std::size_t count_width = 0;
  std::size_t share_width = 0;
  std::int64_t most = 1;
  std::size_t empty = 0;  // classes without an element, one after another
  for (const std::size_t i : classes_of(comparison)) {
    constexpr std::size_t kShown = 3;
    const std::int64_t count = counts.count(i);
    empty = count == 0 ? empty + 1 : 0;
    if (empty > kShown) {
      lines.back() = {"...", "", "", 0};
      continue;
    }
    lines.push_back({label_of(i), std::to_string(count), percentage_text(count, all), count});
    label_width = std::max(label_width, lines.back().label.size());
    count_width = std::max(count_width, lines.back().count.size());
    share_width = std::max(share_width, lines.back().share.size());
    most = std::max(most, count);
  }
  const std::size_t taken = label_width + count_width + share_width + 6;
  const auto columns = static_cast<std::size_t>(std::max(style.filled_width(), 0));
  const std::size_t width = columns > taken + 10 ? columns - taken : 10;
  const auto right = [](const std::string& cell, std::size_t cells) {
    return std::string(cells - cell.size(), ' ') + cell;
  };
  for (const Line& line : lines) {
    std::string own = concat(
        right(line.label, label_width), "  ", right(line.count, count_width), "  ",
        right(line.share, share_width), "  ",
        bar(static_cast<double>(line.elements) / static_cast<double>(most), width, style.utf8));
    own.erase(own.find_last_not_of(' ') + 1);
    text += own + '\n';
  }
  return text;
}

}  // namespace lnorm
