#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/measure/histogram.hpp"
#include "lnorm/report/in_order.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/record.hpp"
#include "lnorm/report/reports.hpp"
#include "lnorm/report/style.hpp"
#include "lnorm/report/table.hpp"

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

// "5 NaN, 2 inf"; what is not there is left out.
std::string counts_text(std::initializer_list<std::pair<std::int64_t, std::string>> parts) {
  return joined(parts, ", ", [](const auto& part) {
    return part.first > 0 ? concat(part.first, ' ', part.second) : "";
  });
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

// A title with the number of elements and their range in that many significant digits, bars over the
// style's width with the count of the highest beside it, an axis with ticks under them, and at its
// margins what lies outside. In block characters, or in ASCII where the style has no UTF-8. A bar that
// is not empty shows.
std::string histogram_text(std::string_view title, const Histogram& histogram, int digits,
                           const Style& style) {
  const auto number = [&](double value) { return significant_text(value, digits); };
  const bool drawn = histogram.count() > 0 && histogram.min() < histogram.max();
  std::string about = concat(title, ": ", histogram.count());
  const std::string others = counts_text({{histogram.nans(), "NaN"},
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
         margin_text(counts_text({{bars.below, "below " + number(bars.low)},
                                  {histogram.minus_infinities(), "at -inf"}}),
                     counts_text({{histogram.infinities(), "at inf"},
                                  {bars.above, "above " + number(bars.high)}}),
                     columns);
}

constexpr std::int64_t kRowsAtEnds = 5;
constexpr std::int64_t kMaxRows = 20;  // more are summarized

class StatsText {
 public:
  StatsText(const Stats& stats, const StatsTextOptions& options, TextWriter text)
      : stats_(stats),
        options_(options),
        text_(std::move(text)),
        rows_(row_shape(stats.x.shape, stats.axes)) {
    const std::int64_t rows = stats.summary.rows;
    if (stats.top) top_ = top_rows(stats);
    ends_ = options.all || rows <= kMaxRows ? rows : kRowsAtEnds;
  }

  void write() {
    write_head();
    if (stats_.summary.rows == 0) return text_.line("no elements");
    std::vector<TableColumn> columns;
    if (stats_.summary.input.rows > 0) columns.push_back({"input", "non-finite"});
    for (const StatsColumn& column : stats_.columns)
      columns.push_back({column.tensor(), column.name()});
    const Table table({"", "row"}, columns, [this](const auto& see) { for_each_line(see); });
    table.write(text_, text_.style().width);
    if (stats_.histograms) write_histograms();
  }

 private:
  void write_head() {
    const Formula& formula = stats_.formula;
    const Norm& norm = formula.norm();
    text_.folded(tensor_text(stats_.x), ", ", norm.prefix, normalized_text(stats_.x, stats_.axes));
    text_.folded(numbering_text());
    const std::string eps = concat("eps ", value_text(formula.eps), " ", formula.eps_place().prefix,
                                   norm.variance, ", ");
    const bool has_rstd = stats_.given == Stats::Given::rstd;
    const std::string given = stats_.given == Stats::Given::nothing
                                  ? ""
                                  : concat("outputs by the ", norm.has_mean ? "mean and " : "",
                                           has_rstd ? "rstd" : "variance", " that ",
                                           norm.has_mean ? "are" : "is", " given, ");
    text_.folded(given, has_rstd ? "" : eps, variances_text(formula.ddof), terms_text());
    write_non_finite(stats_.summary.input, "", "; not summarized");
    write_non_finite(stats_.summary.output, "the output alone of ", "");
    if (stats_.top) text_.folded(top_text(*stats_.top, "row", stats_.summary.rows));
    text_.line();
  }

  // How many rows, and what their numbers are: said before one is named.
  std::string numbering_text() const {
    const std::int64_t rows = element_count(rows_);
    const std::int64_t length = element_count(extents(stats_.x.shape, stats_.axes));
    const std::int64_t shown = stats_.slice ? stats_.slice->count : rows;
    std::string text = concat(counted(shown, "row"), " of ", counted(length, "element"));
    if (rows < 2) return text;
    const std::string along = " along " + axes_text(kept_axes(stats_.x.shape, stats_.axes));
    if (shown < rows) return concat(text, ": ", rows_text(*stats_.slice), along);
    return concat(text, ", numbered ", row_name(0, rows_), " to ", row_name(rows - 1, rows_),
                  along);
  }

  void write_non_finite(const NonFinite& found, std::string_view where, std::string_view remark) {
    if (found.rows == 0) return;
    const std::optional<Shape> index = stats_.first_index(found);
    text_.bad("NaN or infinity in ", where, found.rows, " of ", counted(stats_.summary.rows, "row"),
              " (", counted(found.elements, "element"), "), first in row ",
              row_name(stats_.row_number(found.first_row), rows_),
              index ? ", at " + to_string(*index) : "", remark);
  }

  // What there is beside x, and what is done on the way.
  std::string terms_text() const {
    std::vector<std::string> terms;
    if (stats_.weight) terms.emplace_back(stats_.zero_centered_weight ? "1 + weight" : "weight");
    if (stats_.bias) terms.emplace_back("bias");
    if (stats_.residual) terms.emplace_back("residual");
    return concat(terms.empty() ? "" : ", with ", joined(terms, " and "),
                  stats_.rounded.empty() ? "" : ", rounded: ", joined(stats_.rounded, " and "),
                  stats_.mask ? ", without what the mask leaves out" : "");
  }

  TableLine line_of(std::int64_t number, const StatsRow& row) const {
    TableLine line{row_name(stats_.row_number(number), rows_), {}};
    line.is_bad = row.input.non_finite + row.output.non_finite > 0;
    if (stats_.summary.input.rows > 0) line.cells.push_back(std::to_string(row.input.non_finite));
    for (const StatsColumn& column : stats_.columns) line.cells.push_back(cell(column.of(row)));
    return line;
  }

  std::string cell(double value) const { return significant_text(value, options_.digits); }

  // Every row that is shown, what lies between, and the summary.
  void for_each_line(const std::function<void(const TableLine&)>& see) const {
    std::int64_t number = 0;
    const auto see_row = [&](const StatsRow& row) { see(line_of(number++, row)); };
    for (const NumberedRow& row : top_) see(line_of(row.number, row.row));
    if (!stats_.top) stats_.each_row(0, ends_, see_row);
    if (!stats_.top && ends_ < stats_.summary.rows) {
      see({"...", {}});
      number = stats_.summary.rows - ends_;
      stats_.each_row(number, ends_, see_row);
    }
    see({});
    for (const TableLine& line : summary_lines()) see(line);
  }

  std::vector<TableLine> summary_lines() const {
    std::vector<TableLine> lines{{"count", {}}, {"min", {}}, {"median", {}}, {"max", {}}};
    if (stats_.summary.input.rows > 0) {
      for (TableLine& line : lines) line.cells.emplace_back();
    }
    for (const ColumnSummary& column : stats_.summary.columns) {
      lines[0].cells.push_back(std::to_string(column.count));
      lines[1].cells.push_back(cell(column.min));
      lines[2].cells.push_back(cell(column.median));
      lines[3].cells.push_back(cell(column.max));
    }
    return lines;
  }

  void write_histograms() {
    const StatsHistograms& histograms = *stats_.histograms;
    const auto write = [&](std::string_view title, const Histogram& histogram) {
      text_.raw('\n' + histogram_text(title, histogram, options_.digits, text_.style()));
    };
    write("elements of the input", histograms.input);
    const bool has_output =
        std::any_of(stats_.columns.begin(), stats_.columns.end(),
                    [](const StatsColumn& c) { return c.tensor() == "output"; });
    if (has_output) write("elements of the output", histograms.output);
    write("means of the input rows", histograms.row_means);
    write("variances of the input rows", histograms.row_variances);
  }

  const Stats& stats_;
  const StatsTextOptions& options_;
  TextWriter text_;
  Shape rows_;
  std::int64_t ends_;             // how many rows are shown at either end
  std::vector<NumberedRow> top_;  // or these
};

// The values of a row, by number; those of the columns follow.
enum RowValue : std::size_t { kNumber, kIndex, kNonFinite, kOutputNonFinite, kFirstColumn };

Record row_form(const Stats& stats, const Shape& rows) {
  const bool has_index = rows.size() > 1;
  Record record{{"row", Slot{kNumber}},
                {"index", Slot{kIndex}, "", has_index ? "index" : kNoColumn, 1},
                {"non_finite", Slot{kNonFinite}},
                {"output_non_finite", Slot{kOutputNonFinite}}};
  for (std::size_t i = 0; i < stats.columns.size(); ++i) {
    record.push_back({stats.columns[i].key, Slot{kFirstColumn + i}});
  }
  return record;
}

Record record_of(const Stats& stats, const StatsSummary& summary) {
  Record record{{"rows", summary.rows},
                {"non_finite_rows", summary.input.rows},
                {"non_finite_elements", summary.input.elements},
                {"output_non_finite_rows", summary.output.rows},
                {"output_non_finite_elements", summary.output.elements}};
  for (std::size_t i = 0; i < stats.columns.size(); ++i) {
    record.push_back({stats.columns[i].key, summary.columns[i]});
  }
  return record;
}

// Writes the rows that are reported, with their numbers in the whole tensor.
void write_rows(const Stats& stats, ItemForm::Format format,
                const std::function<void(std::string_view)>& write) {
  const Shape shape = row_shape(stats.x.shape, stats.axes);
  const ItemForm form(format, row_form(stats, shape));
  const auto append = [&](const NumberedRow& one, std::string& text) {
    form.append(text, [&](std::size_t value, const ItemForm::Place& place) {
      if (value >= kFirstColumn) return place.put(stats.columns[value - kFirstColumn].of(one.row));
      if (value == kIndex) return place.put(index_of(one.number, shape));
      place.put(value == kNumber      ? one.number
                : value == kNonFinite ? one.row.input.non_finite
                                      : one.row.output.non_finite);
    });
  };
  InOrder<NumberedRow> rows(stats.in_parallel, append, write);
  if (stats.top) {
    for (const NumberedRow& row : top_rows(stats)) {
      rows.add({stats.row_number(row.number), row.row});
    }
  } else {
    std::int64_t number = stats.row_number(0);
    stats.each_row(0, stats.summary.rows, [&](const StatsRow& row) { rows.add({number++, row}); });
  }
  rows.flush();
}

}  // namespace

void write_text(const Stats& stats, const StatsTextOptions& options, const Style& style,
                ByteSink& bytes) {
  StatsText(stats, options, {style, bytes}).write();
}

void write_json(const Stats& stats, ByteSink& bytes) {
  Record report = normalization_record(stats.x, stats.out, stats.axes, stats.formula);
  report.insert(report.end(),
                {{"weight", stats.weight},
                 {"zero_centered_weight", stats.zero_centered_weight},
                 {"bias", stats.bias},
                 {"residual", stats.residual},
                 {"round", stats.rounded},
                 {"mask", stats.mask},
                 {"given", stats.given == Stats::Given::nothing
                               ? Absent()
                               : Value(stats.given == Stats::Given::rstd ? "rstd" : "variance")},
                 {"slice", if_any(stats.slice)}});
  const Record tail{{"summary", record_of(stats, stats.summary)},
                    {"first_non_finite_index", stats.first_index(stats.summary.input)}};
  JsonList list("stats", report, "rows", bytes, stats.top);
  write_rows(stats, ItemForm::Format::json, [&](std::string_view text) { list.add_text(text); });
  list.finish(tail);
}

void write_csv(const Stats& stats, ByteSink& bytes) {
  bytes.write(csv_names(row_form(stats, row_shape(stats.x.shape, stats.axes))));
  write_rows(stats, ItemForm::Format::csv, [&](std::string_view text) { bytes.write(text); });
}

}  // namespace lnorm
