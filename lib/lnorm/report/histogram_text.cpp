#include "lnorm/report/histogram_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kHeight = 6;  // lines

// From empty to full.
constexpr std::string_view kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kAscii[] = {" ", ".", ":", "#"};

// Few numbers show no shape in many bins.  [Rice's rule]
std::size_t wanted_bins(std::int64_t count) {
  return static_cast<std::size_t>(std::ceil(2 * std::cbrt(static_cast<double>(count))));
}

// How many digits show the ends of a range apart.
int digits_of_range(double min, double max) {
  constexpr double kMost = 17;
  const double size = std::max(std::fabs(min), std::fabs(max)) / 2;
  return static_cast<int>(std::min(kMost, 4 + std::ceil(std::log10(size / (max / 2 - min / 2)))));
}

}  // namespace

std::string histogram_text(std::string_view title, const Histogram& histogram, const Style& style) {
  const std::string left_out =
      histogram.left_out() > 0 ? concat(" (and ", histogram.left_out(), " not finite)") : "";
  const std::string head = concat(style.heading(title), ": ", histogram.count(), left_out);
  if (histogram.count() == 0) return head + '\n';
  if (histogram.min() == histogram.max()) {
    return concat(head, ", all ", value_text(histogram.min()), '\n');
  }
  const int digits = digits_of_range(histogram.min(), histogram.max());
  const std::string least = rounded_text(histogram.min(), digits);
  const std::string most = rounded_text(histogram.max(), digits);
  const auto glyphs = style.utf8 ? std::span(kBlocks).first(9) : std::span(kAscii).first(4);
  const auto full = static_cast<std::int64_t>(glyphs.size()) - 1;
  const auto width = static_cast<std::size_t>(std::max(style.width, 1));
  const auto counts = histogram.bars(std::min(width, wanted_bins(histogram.count())));
  const std::int64_t highest = *std::max_element(counts.begin(), counts.end());

  std::string text = concat(head, ", the highest bar ", highest, '\n');
  for (std::int64_t line = kHeight - 1; line >= 0; --line) {
    std::string bars;
    for (std::size_t column = 0; column < width; ++column) {
      // In steps of a glyph; what is there shows.
      const std::int64_t count = counts[column * counts.size() / width];
      const double share = static_cast<double>(count) / static_cast<double>(highest);
      const std::int64_t steps = std::lround(share * static_cast<double>(kHeight * full));
      const std::int64_t height = std::max<std::int64_t>(steps, count > 0 ? 1 : 0);
      const auto step = std::clamp<std::int64_t>(height - line * full, 0, full);
      bars += glyphs[static_cast<std::size_t>(step)];
    }
    bars.erase(bars.find_last_not_of(' ') + 1);
    text += bars + '\n';
  }
  const std::size_t taken = least.size() + most.size();
  const std::size_t gap = width > taken ? width - taken : 1;
  return text + least + std::string(gap, ' ') + most + '\n';
}

}  // namespace lnorm
