#include "lnorm/report/comparison_report.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/criteria_text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/table.hpp"
#include "lnorm/report/ulp_text.hpp"

namespace lnorm {

namespace {

class ComparisonText {
 public:
  ComparisonText(const Comparison& comparison, bool histogram, const Style& style)
      : c_(comparison), histogram_(histogram), style_(style) {}

  std::string str() {
    const std::string names =
        concat(printable(c_.actual.name), " and ", printable(c_.expected.name));
    if (!c_.same_shape) {
      add(names, style_.bad(" differ in shape: "), to_string(c_.actual.shape), ", expected ",
          to_string(c_.expected.shape));
      return text_;
    }
    add(names, c_.equal() ? style_.good(" agree") : style_.bad(" differ"), " (",
        dtypes_text(c_, " and "), ", shape ", to_string(c_.expected.shape),
        c_.slice ? ", " + rows_text(*c_.slice) : "", ')');
    add("mismatched: ", c_.mismatched, " / ", c_.elements, " (",
        percentage_text(c_.mismatched, c_.elements), "), ", criteria_text(c_.criteria));
    add_failures();
    add("greatest absolute difference: ", difference(c_.absolute));
    add("greatest relative difference: ", difference(c_.relative));
    add("greatest distance in ulp", ulp_name(), ": ", ulps());
    add_errors();
    add("NaN or infinity on one side only: ", c_.non_finite_one_side,
        c_.rounded_to_infinity == 0
            ? ""
            : concat(", ", c_.rounded_to_infinity, " of them as expected is rounded"));
    if (c_.non_finite_differing > 0) {
      add("NaN or infinity on both sides, not equal: ", c_.non_finite_differing);
    }
    if (c_.rows) add_rows(*c_.rows);
    if (histogram_) text_ += ulp_histogram_text("distances in ulp" + ulp_name(), c_, style_);
    add_worst();
    add_mismatches();
    return text_;
  }

 private:
  template <class... Parts>
  void add(const Parts&... parts) {
    text_ += style_.folded(concat(parts...));
  }
  // As wide as it is.
  template <class... Parts>
  void add_line(const Parts&... parts) {
    text_ += concat(parts..., '\n');
  }

  std::string place(const ElementPair& pair) const { return to_string(c_.index(pair)); }

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

  // Steps are those of the expected dtype; of another one it is said.
  std::string ulp_name() const {
    return c_.ulp_dtype() == c_.expected.dtype ? "" : concat(" of ", name(c_.ulp_dtype()));
  }

  std::string ulps() const {
    if (!c_.ulps) return "none";
    if (c_.ulps->value == Ulps{0, c_.ulps->value.is_real}) return "0";
    return concat(ulps_text(c_.ulps->value, c_.expected.dtype), " at ", place(c_.ulps->at));
  }

  void add_failures() {
    const std::vector<Failure> failures = c_.failures();
    if (failures.empty()) return;
    add("fails: ", failures_text(c_.criteria, failures));
  }

  void add_errors() {
    const ErrorStats& errors = c_.errors;
    if (errors.pairs() == 0) return;
    add("ulp: ", ulp_shares_text(c_));
    const bool same_dtype = c_.actual.dtype == c_.expected.dtype;
    const auto rounded = c_.correctly_rounded();
    const std::int64_t right = rounded      ? *rounded
                               : same_dtype ? errors.equal_bits()
                                            : errors.equal_numbers();
    add(rounded      ? "correctly rounded: "
        : same_dtype ? "equal bits: "
                     : "equal numbers: ",
        right, " / ", errors.pairs(), " (", percentage_text(right, errors.pairs()), ")");
    add("mean error: ", rounded_text(*errors.mean(), 3),
        ", absolute: ", rounded_text(*errors.mean_absolute(), 3),
        ", root mean square: ", rounded_text(*errors.root_mean_square(), 3));
    add("mean error toward zero: ", rounded_text(*errors.mean_toward_zero(), 3),
        ", away from zero: ", rounded_text(*errors.mean_away_from_zero(), 3));
    add("cosine: ", errors.cosine() ? rounded_text(*errors.cosine(), 12) : "none",
        ", SQNR: ", rounded_text(*errors.sqnr(), 4), " dB");
  }

  void add_rows(const MismatchedRows& rows) {
    add("rows over ", axes_text(rows.axes), ": ", rows.mismatched, " / ", rows.rows, " differ",
        rows.mismatched == 0 ? "" : concat(", the first is ", to_string(rows.first)));
  }

  TableLine line_of(const WorstElement& element) const {
    const ElementPair& pair = element.pair;
    TableLine line{place(pair), {}};
    if (c_.rows) line = {to_string(c_.row_index(pair)), {place(pair)}};
    line.cells.insert(line.cells.end(), {actual(pair), expected(pair)});
    if (const auto& distances = element.distances) {
      line.cells.insert(line.cells.end(), {ulps_text(distances->ulps, c_.expected.dtype),
                                           rounded_text(distances->absolute, 3),
                                           rounded_text(distances->relative, 3)});
    } else {
      line.cells.insert(line.cells.end(), {"-", "-", "-"});
    }
    if (c_.row_max_axes) {
      line.cells.push_back(element.row_max == kNoneFinite ? "-"
                                                          : significant_text(element.row_max, 3));
    }
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
      for (const std::string& line : table.head(block)) add_line(style_.heading(line));
      for (const TableLine& line : lines) add_line(table.text(line, block));
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
    add("near zero ulp and rel say little: at ", place(near->pair), " the difference is ",
        rounded_text(near->distances->absolute / near->row_max, 3), " of row max");
  }

  void add_mismatches() {
    if (c_.first_mismatches.empty()) return;
    add("first mismatches:");
    for (const ElementPair& pair : c_.first_mismatches) {
      add_line("  ", place(pair), ": ", style_.bad(actual(pair)), ", expected ",
               style_.good(expected(pair)));
    }
  }

  const Comparison& c_;
  bool histogram_;
  const Style& style_;
  std::string text_;
};

}  // namespace

std::string dtypes_text(const Comparison& comparison, std::string_view between) {
  const auto actual = name(comparison.actual.dtype);
  const auto expected = name(comparison.expected.dtype);
  return actual == expected ? std::string(actual) : concat(actual, between, expected);
}

std::string comparison_text(const Comparison& comparison, bool histogram, const Style& style) {
  return ComparisonText(comparison, histogram, style).str();
}

}  // namespace lnorm
