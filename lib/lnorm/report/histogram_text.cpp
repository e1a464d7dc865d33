#include "lnorm/report/histogram_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kHeight = 6;  // lines

struct Glyphs {
  std::span<const std::string_view> bars;  // from empty to full
  std::string_view highest;                // beside its count
  std::string_view side;
  std::string_view corner;
  std::string_view axis;
  std::string_view tick;
};
constexpr std::string_view kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kAscii[] = {" ", ".", ":", "#"};
constexpr Glyphs kUtf8Glyphs{kBlocks, "┤", "│", "┼", "─", "┬"};
constexpr Glyphs kAsciiGlyphs{kAscii, "+", "|", "+", "-", "+"};

// Few numbers show no shape in many bars.  [Rice's rule]
std::size_t wanted_bars(std::int64_t count) {
  return static_cast<std::size_t>(std::ceil(2 * std::cbrt(static_cast<double>(count))));
}

// ", "-separated: "5 NaN, 2 inf".
std::string listed(std::initializer_list<std::pair<std::int64_t, std::string>> parts) {
  std::string text;
  for (const auto& [count, what] : parts) {
    if (count > 0) text += concat(text.empty() ? "" : ", ", count, ' ', what);
  }
  return text;
}

struct Tick {
  double value;
  std::string label;
};

// 1, 2 or 5 times a power of ten apart, as many as have room.
std::vector<Tick> ticks(double low, double high, std::size_t width) {
  constexpr double kColumns = 10;          // for each
  const double half = high / 2 - low / 2;  // the range may overflow
  const double least =
      std::max(half / std::max(static_cast<double>(width) / kColumns, 1.0), 5e-324);
  const double power = std::pow(10, std::floor(std::log10(least)));
  double step = 20 * power;
  for (const double factor : {10, 5, 2}) {
    if (factor * power >= 2 * least) step = factor * power;
  }
  const double size = std::max(std::fabs(low), std::fabs(high));
  const double place = std::floor(std::log10(step));  // of the last digit that tells ticks apart
  const double digits = std::clamp(std::floor(std::log10(size)) - place + 1, 1.0, 17.0);
  const auto label = [&](double value) {
    return size < 1e6 && place >= -5 ? fixed_text(value, static_cast<int>(std::max(0.0, -place)))
                                     : rounded_text(value, static_cast<int>(digits));
  };
  std::vector<Tick> result;
  const double first = std::ceil(low / step);
  for (std::size_t i = 0; i <= width; ++i) {
    const double value = (first + static_cast<double>(i)) * step;
    if (!(value <= high)) break;
    result.push_back({value, label(value)});
  }
  return result;
}

struct Drawing {
  const Glyphs& glyphs;
  const Histogram::Bars& bars;
  std::int64_t highest;
  std::size_t width;  // of the bars

  std::string beside(std::string_view label, std::string_view glyph) const {
    const std::string blanks(std::to_string(highest).size() - label.size(), ' ');
    return concat(blanks, label, ' ', glyph);
  }

  std::string bars_text() const {
    const auto full = std::ssize(glyphs.bars) - 1;
    std::string text;
    for (std::int64_t line = kHeight - 1; line >= 0; --line) {
      std::string columns = line == kHeight - 1 ? beside(std::to_string(highest), glyphs.highest)
                                                : beside("", glyphs.side);
      for (std::size_t column = 0; column < width; ++column) {
        // In steps of a glyph; what is there shows.
        const std::int64_t count = bars.counts[column * bars.counts.size() / width];
        const double share = static_cast<double>(count) / static_cast<double>(highest);
        const std::int64_t steps = std::lround(share * static_cast<double>(kHeight * full));
        const std::int64_t height = std::max<std::int64_t>(steps, count > 0 ? 1 : 0);
        const auto step = std::clamp<std::int64_t>(height - line * full, 0, full);
        columns += glyphs.bars[static_cast<std::size_t>(step)];
      }
      columns.erase(columns.find_last_not_of(' ') + 1);
      text += columns + '\n';
    }
    return text;
  }

  // Every tick with its label in the middle under it, where there is room.
  std::string axis_text() const {
    std::vector<bool> marked(width);
    std::string labels;
    for (const Tick& tick : ticks(bars.low, bars.high, width)) {
      const double share = (tick.value / 2 - bars.low / 2) / (bars.high / 2 - bars.low / 2);
      const double place =
          std::min(share * static_cast<double>(width), static_cast<double>(width - 1));
      const std::size_t column = place > 0 ? static_cast<std::size_t>(place) : 0;  // or rounding
      const std::size_t start = column - std::min(column, tick.label.size() / 2);
      if ((!labels.empty() && start <= labels.size()) || start + tick.label.size() > width)
        continue;
      marked[column] = true;
      labels.resize(start, ' ');
      labels += tick.label;
    }
    std::string text = beside("0", glyphs.corner);
    for (const bool tick : marked) text += tick ? glyphs.tick : glyphs.axis;
    return concat(text, '\n', beside("", ""), ' ', labels, '\n');
  }
};

// What lies on either side of the axis, below it.
std::string margin_text(std::string below, std::string above, std::size_t width) {
  if (!below.empty()) below.insert(0, "< ");
  if (!above.empty()) above += " >";
  if (below.empty() && above.empty()) return "";
  const auto blanks = [&](std::size_t taken) {
    return std::string(width - std::min(width, taken), ' ');
  };
  const bool together = below.size() + 2 + above.size() <= width;
  if (!together && !below.empty()) below += '\n';
  if (!above.empty()) below += blanks(above.size() + (together ? below.size() : 0)) + above;
  return below + '\n';
}

}  // namespace

std::string histogram_text(std::string_view title, const Histogram& histogram, int digits,
                           const Style& style) {
  const auto number = [&](double value) { return significant_text(value, digits); };
  const bool drawn = histogram.count() > 0 && histogram.min() < histogram.max();
  std::string about = concat(title, ": ", histogram.count());
  const std::string others = listed({{histogram.nans(), "NaN"},
                                     {drawn ? 0 : histogram.minus_infinities(), "-inf"},
                                     {drawn ? 0 : histogram.infinities(), "inf"}});
  if (!others.empty()) about += concat(" (and ", others, ')');
  const auto head = [&] {
    const std::string text = style.folded(about);
    return text.starts_with(title) ? style.heading(title) + text.substr(title.size()) : text;
  };
  if (!drawn) {
    if (histogram.count() > 0) about += concat(", all ", value_text(histogram.min()));
    return head();
  }
  const auto columns = static_cast<std::size_t>(std::max(style.width, 1));
  const auto beside = [&](std::int64_t count) {
    const std::size_t taken = std::to_string(count).size() + 2;  // and the side
    return columns - std::min(columns - 1, taken);
  };
  const Histogram::Bars bars =
      histogram.bars(std::min(beside(histogram.count()), wanted_bars(histogram.count())));
  const std::int64_t highest = *std::max_element(bars.counts.begin(), bars.counts.end());
  about += concat(" from ", number(histogram.min()), " to ", number(histogram.max()), ", ", highest,
                  " in the highest bar");
  const Drawing drawing{style.utf8 ? kUtf8Glyphs : kAsciiGlyphs, bars, highest, beside(highest)};
  return head() + drawing.bars_text() + drawing.axis_text() +
         margin_text(listed({{bars.below, "below " + number(bars.low)},
                             {histogram.minus_infinities(), "at -inf"}}),
                     listed({{histogram.infinities(), "at inf"},
                             {bars.above, "above " + number(bars.high)}}),
                     columns);
}

}  // namespace lnorm
