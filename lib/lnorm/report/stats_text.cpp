#include "lnorm/report/stats_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/report/histogram_text.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kRowsAtEnds = 5;
constexpr std::int64_t kMostRows = 20;  // more are summarised

// The values that columns of one unit have in common.
struct Unit {
  double largest = 0;
  double smallest = std::numeric_limits<double>::infinity();  // but for zeros
  bool scientific = false;

  void consider(double value) {
    if (!std::isfinite(value) || value == 0) return;
    largest = std::max(largest, std::fabs(value));
    smallest = std::min(smallest, std::fabs(value));
  }
};

std::string format(double value, bool scientific) {
  if (!std::isfinite(value)) return value_text(value);
  std::array<char, 400> buffer;
  const auto style = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, style, 4);
  std::string text(buffer.data(), result.ptr);
  // A mean next to zero need not say from which side.
  if (text.find_first_not_of("-0.") == std::string::npos) text.erase(0, text.find('0'));
  return text;
}

// Mean, min and max of the input are in one unit, mean and sum of the output in another; a variance
// has one of its own, and so have sum and mean of softmax.
enum : std::size_t {
  kInput,
  kInputVariance,
  kOutputMean,
  kOutputVariance,
  kSoftmaxSum,
  kSoftmaxMean,
  kSoftmaxVariance,
  kUnits
};
std::size_t unit_of(const StatsColumn& column) {
  const bool variance = column.name == "variance";
  if (column.tensor == "input") return variance ? kInputVariance : kInput;
  if (column.tensor == "output") return variance ? kOutputVariance : kOutputMean;
  return variance ? kSoftmaxVariance : column.name == "mean" ? kSoftmaxMean : kSoftmaxSum;
}
constexpr bool is_variance(std::size_t unit) {
  return unit == kInputVariance || unit == kOutputVariance || unit == kSoftmaxVariance;
}

struct Line {
  std::string label;
  std::vector<std::string> cells;
  bool bad = false;
};

class TextReport {
 public:
  TextReport(const Stats& stats, bool all, const Style& style, ByteSink& bytes)
      : stats_(stats), style_(style), bytes_(bytes), rows_(row_shape(stats.x.shape, stats.axes)) {
    const std::int64_t rows = stats.summary.rows;
    ends_ = all || rows <= kMostRows ? rows : kRowsAtEnds;
    has_non_finite_ = stats.summary.input.rows > 0;
  }

  void write() {
    write_head();
    if (stats_.summary.rows == 0) return write_line("no elements");
    choose_notation();
    name_lines_ = name_lines();
    measure_widths();
    write_names();
    for_each_line([&](const Line& line) { write_cells(line); });
    write_line("");
    for (const Line& line : summary_lines()) write_cells(line);
    if (stats_.histograms) write_histograms();
  }

 private:
  void write_line(const std::string& text) { bytes_.write(text + '\n'); }

  void write_head() {
    const Formula& formula = stats_.formula;
    const Shape& shape = stats_.x.shape;
    std::string axes;
    Shape normalized;
    for (const std::size_t axis : stats_.axes) {
      axes += concat(axes.empty() ? "" : ", ", axis);
      normalized.push_back(shape[axis]);
    }
    axes.insert(0, stats_.axes.empty() ? "no axes" : stats_.axes.size() == 1 ? "axis " : "axes ");
    write_line(concat(style_.heading(printable(stats_.x.name)), ": ", name(stats_.x.dtype),
                      ", shape ", shape_text(shape), ", ", formula.rms ? "RMS-" : "",
                      "normalised over ", axes, ": ", counted(element_count(rows_), "row"), " of ",
                      element_count(normalized)));
    write_line(concat("eps ", value_text(formula.eps), " on the ",
                      formula.eps_on == EpsOn::std ? "root of the " : "",
                      formula.rms ? "mean of squares" : "variance", ", ",
                      formula.ddof == 0   ? "biased variances"
                      : formula.ddof == 1 ? "unbiased variances"
                                          : "variances",
                      " (ddof ", formula.ddof, ")", affine_text()));
    write_non_finite(stats_.summary.input, "", "; the summary leaves them out");
    write_non_finite(stats_.summary.output, "the output of ", ", where the input is finite");
    write_line("");
  }

  void write_non_finite(const NonFinite& found, std::string_view where, std::string_view remark) {
    if (found.rows == 0) return;
    write_line(style_.bad(concat("NaN or infinity in ", where, found.rows, " of ",
                                 counted(stats_.summary.rows, "row"), " (",
                                 counted(found.elements, "element"), "), first in row ",
                                 row_text(found.first_row), remark)));
  }

  std::string affine_text() const {
    std::string text = stats_.zero_centered_weight ? "1 + weight" : stats_.weight ? "weight" : "";
    if (stats_.bias) text += text.empty() ? "bias" : " and bias";
    return text.empty() ? text : ", with " + text;
  }

  bool is_shown(std::int64_t number) const {
    return number < ends_ || number >= stats_.summary.rows - ends_;
  }

  // Calls see(number, row) for every row that is shown.
  template <class See>
  void for_each_shown(See see) const {
    std::int64_t number = 0;
    stats_.each_row([&](const StatsRow& row) {
      if (is_shown(number)) see(number, row);
      ++number;
    });
  }

  void choose_notation() {
    const auto consider = [&](std::size_t i, double value) {
      const StatsColumn& column = stats_.columns[i];
      units_[unit_of(column)].consider(value);
      // A mean of the output next to zero is to be seen as that: it is held against the deviation.
      if (unit_of(column) == kOutputVariance) units_[kOutputMean].consider(std::sqrt(value));
    };
    for (std::size_t i = 0; i < stats_.columns.size(); ++i) {
      const ColumnSummary& column = stats_.summary.columns[i];
      for (const double value : {column.min, column.median, column.max}) consider(i, value);
    }
    for_each_shown([&](std::int64_t, const StatsRow& row) {
      for (std::size_t i = 0; i < stats_.columns.size(); ++i)
        consider(i, stats_.columns[i].of(row));
    });
    for (std::size_t i = 0; i < kUnits; ++i) {
      Unit& unit = units_[i];
      // A variance may collapse in one row alone.
      const double least = is_variance(i) ? unit.smallest : unit.largest;
      unit.scientific = unit.largest > 0 && (unit.largest >= 1e9 || least < 1e-3);
    }
  }

  std::string row_text(std::int64_t number) const {
    return rows_.size() == 1 ? std::to_string(number) : index_text(index_of(number, rows_));
  }

  std::string cell(std::size_t column, double value) const {
    return format(value, units_[unit_of(stats_.columns[column])].scientific);
  }

  Line line_of(std::int64_t number, const StatsRow& row) const {
    Line line{row_text(number), {}, row.input.non_finite + row.output.non_finite > 0};
    if (has_non_finite_) line.cells.push_back(std::to_string(row.input.non_finite));
    for (std::size_t i = 0; i < stats_.columns.size(); ++i) {
      line.cells.push_back(cell(i, stats_.columns[i].of(row)));
    }
    return line;
  }

  template <class See>
  void for_each_line(See see) const {
    std::int64_t last = -1;
    for_each_shown([&](std::int64_t number, const StatsRow& row) {
      if (number != last + 1) see(Line{"...", {}});
      last = number;
      see(line_of(number, row));
    });
  }

  std::vector<Line> summary_lines() const {
    std::vector<Line> lines{{"count", {}}, {"min", {}}, {"median", {}}, {"max", {}}};
    if (has_non_finite_) {
      for (Line& line : lines) line.cells.emplace_back();
    }
    for (std::size_t i = 0; i < stats_.columns.size(); ++i) {
      const ColumnSummary& column = stats_.summary.columns[i];
      lines[0].cells.push_back(std::to_string(column.count));
      lines[1].cells.push_back(cell(i, column.min));
      lines[2].cells.push_back(cell(i, column.median));
      lines[3].cells.push_back(cell(i, column.max));
    }
    return lines;
  }

  // The names of the columns, and that of the tensor over the first of each.
  std::array<Line, 2> name_lines() const {
    Line tensors{"", {}};
    Line names{"row", {}};
    if (has_non_finite_) {
      tensors.cells.emplace_back();
      names.cells.emplace_back("non-finite");
    }
    std::string_view tensor;
    for (const StatsColumn& column : stats_.columns) {
      tensors.cells.emplace_back(column.tensor == tensor ? "" : column.tensor);
      names.cells.emplace_back(column.name);
      tensor = column.tensor;
    }
    return {tensors, names};
  }

  void measure_widths() {
    const auto measure = [&](const Line& line) {
      label_width_ = std::max(label_width_, line.label.size());
      widths_.resize(std::max(widths_.size(), line.cells.size()));
      for (std::size_t i = 0; i < line.cells.size(); ++i) {
        widths_[i] = std::max(widths_[i], line.cells[i].size());
      }
    };
    for (const Line& line : name_lines_) measure(line);
    for_each_line(measure);
    for (const Line& line : summary_lines()) measure(line);
  }

  // Three blanks before the first column of a tensor, two before the others.
  std::size_t gap(std::size_t cell) const { return name_lines_[0].cells[cell].empty() ? 2 : 3; }

  std::string padded(const Line& line, bool to_the_left) const {
    std::string text = to_the_left ? line.label : "";
    text.resize(label_width_, ' ');
    if (!to_the_left) text.replace(label_width_ - line.label.size(), line.label.size(), line.label);
    for (std::size_t i = 0; i < line.cells.size(); ++i) {
      const std::string blanks(widths_[i] - line.cells[i].size(), ' ');
      text += std::string(gap(i), ' ');
      text += to_the_left ? line.cells[i] + blanks : blanks + line.cells[i];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

  void write_names() {
    write_line(style_.heading(padded(name_lines_[0], true)));
    write_line(style_.heading(padded(name_lines_[1], false)));
  }

  void write_cells(const Line& line) {
    const std::string text = padded(line, false);
    write_line(line.bad ? style_.bad(text) : text);
  }

  void write_histograms() {
    const StatsHistograms& histograms = *stats_.histograms;
    const auto write = [&](std::string_view title, const Histogram& histogram) {
      bytes_.write('\n' + histogram_text(title, histogram, style_));
    };
    write("elements of the input", histograms.input);
    write("elements of the output", histograms.output);
    write("means of the input rows", histograms.row_means);
    write("variances of the input rows", histograms.row_variances);
  }

  const Stats& stats_;
  const Style& style_;
  ByteSink& bytes_;
  Shape rows_;
  std::int64_t ends_;  // how many rows are shown at either end
  bool has_non_finite_;
  std::array<Unit, kUnits> units_;
  std::array<Line, 2> name_lines_;
  std::size_t label_width_ = 0;
  std::vector<std::size_t> widths_;
};

}  // namespace

void write_stats_text(const Stats& stats, bool all, const Style& style, ByteSink& bytes) {
  TextReport(stats, all, style, bytes).write();
}

}  // namespace lnorm
