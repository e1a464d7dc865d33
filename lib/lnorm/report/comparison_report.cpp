#include "lnorm/report/comparison_report.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/measure/ulp.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

std::string percentage(std::int64_t part, std::int64_t whole) {
  if (part == 0) return "0%";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (percent < 0.1) return rounded_text(percent, 1) + "%";
  if (percent >= 99.95 && part < whole) return "over 99.9%";
  const double tenths = std::round(percent * 10) / 10;
  return value_text(tenths) + "%";
}

class TextReport {
 public:
  TextReport(const Comparison& comparison, const Style& style) : c_(comparison), style_(style) {}

  std::string str() {
    const std::string names =
        concat(printable(c_.actual.name), " and ", printable(c_.expected.name));
    if (!c_.same_shape) {
      add(names, style_.bad(" differ in shape: "), to_string(c_.actual.shape), ", expected ",
          to_string(c_.expected.shape));
      return text_;
    }
    add(names, c_.equal() ? style_.good(" agree") : style_.bad(" differ"), " (",
        dtypes_text(c_, " and "), ", shape ", to_string(c_.expected.shape), ')');
    add("mismatched: ", c_.mismatched, " / ", c_.elements, " (",
        percentage(c_.mismatched, c_.elements), "), tolerance ", tolerance_text(c_.tolerance));
    add("greatest absolute difference: ", difference(c_.absolute));
    add("greatest relative difference: ", difference(c_.relative));
    add("greatest distance in ulp: ", ulps());
    add("NaN or infinity on one side only: ", c_.non_finite_one_side);
    if (c_.non_finite_differing > 0) {
      add("NaN or infinity on both sides, not equal: ", c_.non_finite_differing);
    }
    if (c_.rows) add_rows(*c_.rows);
    add_worst();
    add_mismatches();
    return text_;
  }

 private:
  template <class... Parts>
  void add(const Parts&... parts) {
    text_ += concat(parts..., '\n');
  }

  std::string place(const ElementPair& pair) const {
    return to_string(index_of(pair.position, c_.actual.shape));
  }

  // Numbers of two dtypes are written as float64, so that it shows where they differ.
  std::string text_of(Number value, DType dtype) const {
    const bool mixed = c_.actual.dtype != c_.expected.dtype && is_floating(dtype);
    return value_text(value, mixed ? DType::float64 : dtype);
  }
  std::string actual(const ElementPair& pair) const {
    return text_of(pair.actual, c_.actual.dtype);
  }
  std::string expected(const ElementPair& pair) const {
    return text_of(pair.expected, c_.expected.dtype);
  }

  std::string difference(const std::optional<Greatest<double>>& greatest) const {
    if (!greatest) return "none";
    if (greatest->value == 0) return "0";
    return concat(rounded_text(greatest->value, 3), " at ", place(greatest->at), ": ",
                  actual(greatest->at), ", expected ", expected(greatest->at));
  }

  std::string ulps() const {
    if (!c_.ulps) return "none";
    if (c_.ulps->value == 0) return "0";
    return concat(c_.ulps->value, " at ", place(c_.ulps->at));
  }

  void add_rows(const MismatchedRows& rows) {
    add("rows over ", axes_text(rows.axes), ": ", rows.mismatched, " / ", rows.rows, " differ",
        rows.mismatched == 0 ? "" : concat(", the first is ", to_string(rows.first)));
  }

  TableLine line_of(const WorstElement& element) const {
    const ElementPair& pair = element.pair;
    TableLine line{place(pair), {}};
    if (c_.rows) line = {to_string(c_.row_index(pair.position)), {place(pair)}};
    line.cells.insert(line.cells.end(), {actual(pair), expected(pair)});
    if (const auto& distances = element.distances) {
      const bool beyond = is_floating(c_.expected.dtype) && distances->ulps == kNoUlpDistance;
      line.cells.insert(line.cells.end(), {beyond ? "beyond" : std::to_string(distances->ulps),
                                           rounded_text(distances->absolute, 3),
                                           rounded_text(distances->relative, 3)});
    } else {
      line.cells.insert(line.cells.end(), {"-", "-", "-"});
    }
    if (c_.row_max_axes) line.cells.push_back(significant_text(element.row_max, 3));
    return line;
  }

  void add_worst() {
    const std::vector<WorstElement>& elements = c_.worst.elements();
    if (elements.empty()) return;
    std::vector<TableColumn> columns{
        {"", "actual"}, {"", "expected"}, {"", "ulp"}, {"", "abs"}, {"", "rel"}};
    if (c_.rows) columns.insert(columns.begin(), {"", "at"});
    if (c_.row_max_axes) columns.push_back({"", "row max"});
    Table table(c_.rows ? "row" : "at", columns);
    std::vector<TableLine> lines;
    lines.reserve(elements.size());
    for (const WorstElement& element : elements) lines.push_back(line_of(element));
    for (const TableLine& line : lines) table.measure(line);
    add("worst ", c_.rows ? "rows" : "elements", " by ", name(c_.worst.by()), ":");
    for (const Table::Block block : table.blocks(style_.width)) {
      for (const std::string& line : table.head(block)) add(style_.heading(line));
      for (const TableLine& line : lines) add(table.text(line, block));
    }
    if (c_.row_max_axes) add_row_max(elements);
  }

  void add_row_max(const std::vector<WorstElement>& elements) {
    const Axes& axes = *c_.row_max_axes;
    add("row max: the greatest |expected|", axes.empty() ? "" : " along " + axes_text(axes));
    // An ulp of a number near zero is next to nothing beside the others of its row.
    constexpr double kNear = 1e-3;
    const auto near = std::find_if(elements.begin(), elements.end(), [&](const WorstElement& e) {
      return e.distances && std::fabs(e.pair.expected.high) < kNear * e.row_max;
    });
    if (near == elements.end() || c_.worst.by() == WorstBy::abs ||
        !is_floating(c_.expected.dtype)) {
      return;
    }
    text_ += style_.folded(
        concat("near zero ulp and rel say little: at ", place(near->pair), " the difference is ",
               rounded_text(near->distances->absolute / near->row_max, 3), " of row max"));
  }

  void add_mismatches() {
    if (c_.first_mismatches.empty()) return;
    add("first mismatches:");
    for (const ElementPair& pair : c_.first_mismatches) {
      add("  ", place(pair), ": ", style_.bad(actual(pair)), ", expected ",
          style_.good(expected(pair)));
    }
  }

  const Comparison& c_;
  const Style& style_;
  std::string text_;
};

}  // namespace

std::string dtypes_text(const Comparison& comparison, std::string_view between) {
  const auto actual = name(comparison.actual.dtype);
  const auto expected = name(comparison.expected.dtype);
  return actual == expected ? std::string(actual) : concat(actual, between, expected);
}

std::string tolerance_text(const Tolerance& tolerance) {
  std::string text = tolerance.ulp_alone ? ""
                                         : concat("rtol ", value_text(tolerance.rtol), " + atol ",
                                                  value_text(tolerance.atol));
  if (tolerance.max_ulp) {
    text += concat(tolerance.ulp_alone ? "" : " and ", *tolerance.max_ulp, " ulp");
  }
  if (!tolerance.equal_nan) text += ", NaN equals nothing";
  return text;
}

std::string comparison_text(const Comparison& comparison, const Style& style) {
  return TextReport(comparison, style).str();
}

}  // namespace lnorm
