#include "lnorm/report/stats_text.hpp"

#include <string>
#include <vector>

#include "lnorm/core/text.hpp"
#include "lnorm/report/histogram_text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

constexpr std::int64_t kRowsAtEnds = 5;
constexpr std::int64_t kMaxRows = 20;  // more are summarized

std::vector<TableColumn> table_columns(const Stats& stats) {
  std::vector<TableColumn> columns;
  if (stats.summary.input.rows > 0) columns.push_back({"input", "non-finite"});
  for (const StatsColumn& column : stats.columns) columns.push_back({column.tensor, column.name});
  return columns;
}

class StatsText {
 public:
  StatsText(const Stats& stats, const StatsTextOptions& options, const Style& style,
            ByteSink& bytes)
      : stats_(stats),
        options_(options),
        style_(style),
        bytes_(bytes),
        rows_(row_shape(stats.x.shape, stats.axes)),
        table_("row", table_columns(stats)) {
    const std::int64_t rows = stats.summary.rows;
    ends_ = options.all || rows <= kMaxRows ? rows : kRowsAtEnds;
  }

  void write() {
    write_head();
    if (stats_.summary.rows == 0) {
      bytes_.write("no elements\n");
      return;
    }
    const std::vector<TableLine> summary = summary_lines();
    for_each_line([&](const TableLine& line, bool) { table_.measure(line); });
    for (const TableLine& line : summary) table_.measure(line);
    bool first = true;
    for (const Table::Block block : table_.blocks(style_.width)) {
      if (!first) write_line("");
      first = false;
      for (const std::string& line : table_.head(block)) write_line(style_.heading(line));
      for_each_line([&](const TableLine& line, bool bad) {
        const std::string text = table_.text(line, block);
        write_line(bad ? style_.bad(text) : text);
      });
      write_line("");
      for (const TableLine& line : summary) write_line(table_.text(line, block));
    }
    if (stats_.histograms) write_histograms();
  }

 private:
  void write_line(const std::string& text) { bytes_.write(text + '\n'); }

  void write_head() {
    const Formula& formula = stats_.formula;
    bytes_.write(style_.folded(concat(
        printable(stats_.x.name), ": ", name(stats_.x.dtype), ", shape ", to_string(stats_.x.shape),
        ", ", formula.rms ? "RMS-" : "", "normalized over ", axes_text(stats_.axes))));
    bytes_.write(style_.folded(numbering_text()));
    bytes_.write(style_.folded(concat("eps ", value_text(formula.eps), " on the ",
                                      formula.eps_on == EpsOn::std ? "root of the " : "",
                                      formula.rms ? "mean of squares" : "variance", ", ",
                                      variances_text(formula.ddof), affine_text())));
    write_non_finite(stats_.summary.input, "", "; not summarized");
    write_non_finite(stats_.summary.output, "the output alone of ", "");
    write_line("");
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
    return concat(text, ", numbered ", index_text(0, rows_), " to ", index_text(rows - 1, rows_),
                  along);
  }

  void write_non_finite(const NonFinite& found, std::string_view where, std::string_view remark) {
    if (found.rows == 0) return;
    std::string text = style_.folded(
        concat("NaN or infinity in ", where, found.rows, " of ",
               counted(stats_.summary.rows, "row"), " (", counted(found.elements, "element"),
               "), first in row ", index_text(stats_.row_number(found.first_row), rows_), remark));
    text.pop_back();  // color ends before the line does
    write_line(style_.bad(text));
  }

  std::string affine_text() const {
    std::string text = stats_.zero_centered_weight ? "1 + weight" : stats_.weight ? "weight" : "";
    if (stats_.bias) text += text.empty() ? "bias" : " and bias";
    return text.empty() ? text : ", with " + text;
  }

  TableLine line_of(std::int64_t number, const StatsRow& row) const {
    TableLine line{index_text(stats_.row_number(number), rows_), {}};
    if (stats_.summary.input.rows > 0) line.cells.push_back(std::to_string(row.input.non_finite));
    for (const StatsColumn& column : stats_.columns) line.cells.push_back(cell(column.of(row)));
    return line;
  }

  std::string cell(double value) const { return significant_text(value, options_.digits); }

  // Calls see(line, whether something is not finite) for every row that is shown, and for what lies between.
  template <class See>
  void for_each_line(See see) const {
    std::int64_t number = 0;
    const auto see_row = [&](const StatsRow& row) {
      see(line_of(number++, row), row.input.non_finite + row.output.non_finite > 0);
    };
    stats_.each_row(0, ends_, see_row);
    if (ends_ == stats_.summary.rows) return;
    see(TableLine{"...", {}}, false);
    number = stats_.summary.rows - ends_;
    stats_.each_row(number, ends_, see_row);
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
      bytes_.write('\n' + histogram_text(title, histogram, options_.digits, style_));
    };
    write("elements of the input", histograms.input);
    write("elements of the output", histograms.output);
    write("means of the input rows", histograms.row_means);
    write("variances of the input rows", histograms.row_variances);
  }

  const Stats& stats_;
  const StatsTextOptions& options_;
  const Style& style_;
  ByteSink& bytes_;
  Shape rows_;
  std::int64_t ends_;  // how many rows are shown at either end
  Table table_;
};

}  // namespace

void write_stats_text(const Stats& stats, const StatsTextOptions& options, const Style& style,
                      ByteSink& bytes) {
  StatsText(stats, options, style, bytes).write();
}

}  // namespace lnorm
