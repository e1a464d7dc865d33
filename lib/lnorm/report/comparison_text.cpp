#include <algorithm>
#include <cmath>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/reports.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

class ComparisonText {
 public:
  ComparisonText(const Comparison& comparison, TextWriter text)
      : c_(comparison), text_(std::move(text)), style_(text_.style()) {}

  void write(bool histogram) {
    const std::string names =
        concat(printable(c_.actual.name), " and ", printable(c_.expected.name));
    if (!c_.same_shape) {
      text_.folded(names, style_.bad(" differ in shape: "), to_string(file_shape(c_.actual)),
                   ", expected ", to_string(file_shape(c_.expected)));
      return;
    }
    text_.folded(names, c_.equal() ? style_.good(" agree") : style_.bad(" differ"), " (",
                 dtypes_text(c_, " and "), ", shape ", to_string(file_shape(c_.expected)),
                 c_.slice ? ", " + rows_text(*c_.slice) : "", ')');
    text_.folded("mismatched: ", c_.mismatched, " / ", c_.compared(), " (",
                 percentage_text(c_.mismatched, c_.compared()), "), ", criteria_text(c_.criteria),
                 c_.left_out == 0 ? "" : concat(", ", c_.left_out, " left out by the mask"));
    if (!c_.equal()) text_.folded("fails: ", failures_text(c_.criteria, c_.failures()));
    if (c_.mismatched > 0) write_where();
    if (c_.fit) {
      text_.folded(fit_text(*c_.fit),
                   " explains every element, up to 4 ulp of the greatest |actual| of its row");
    }
    text_.folded("greatest absolute difference: ", difference(c_.absolute));
    text_.folded("greatest relative difference: ", difference(c_.relative));
    text_.folded("greatest distance in ulp", ulp_name(),
                 " (units in the last place): ", greatest_text(c_.ulps));
    text_.folded("greatest distance in ulp of the row's greatest |expected|: ",
                 greatest_text(c_.row_ulps));
    write_errors();
    text_.folded("NaN or infinity on one side only: ", c_.non_finite_one_side,
                 c_.rounded_to_infinity == 0
                     ? ""
                     : concat(", ", c_.rounded_to_infinity, " of them as expected is rounded"));
    if (c_.non_finite_differing > 0) {
      text_.folded("NaN or infinity on both sides, not equal: ", c_.non_finite_differing);
    }
    if (c_.rows) write_rows(*c_.rows);
    if (histogram) write_ulp_histogram("distances in ulp" + ulp_name(), c_, text_);
    write_worst();
    write_mismatches();
  }

 private:
  std::string place(const ElementPair& pair) const { return to_string(c_.index(pair)); }

  std::string row(const Shape& index) const {
    const Shape rows = row_shape(c_.actual.shape, c_.rows->axes);
    return row_name(position_of(index, rows), rows);
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

  std::string text_of(double distance) const { return rounded_text(distance, 3); }
  std::string text_of(Ulps distance) const { return ulps_text(distance, c_.expected.dtype); }

  template <class T>
  std::string greatest_text(const std::optional<Greatest<T>>& greatest) const {
    if (c_.fails_by_nan_alone()) return "nan";
    if (!greatest) return "none";
    std::string text = text_of(greatest->value);
    return text == "0" ? text : concat(text, " at ", place(greatest->at));
  }

  std::string difference(const std::optional<Greatest<double>>& greatest) const {
    std::string text = greatest_text(greatest);
    if (text == "nan" || !greatest || greatest->value == 0) return text;
    return concat(text, ": ", actual(greatest->at), ", expected ", expected(greatest->at));
  }

  // Steps are those of the expected dtype; of another one it is said.
  std::string ulp_name() const {
    return c_.ulp_dtype() == c_.expected.dtype ? "" : concat(" of ", name(c_.ulp_dtype()));
  }

  void write_where() {
    const std::int64_t columns = c_.affected_columns.count;
    text_.folded("where: ", counted(c_.affected_rows.count, "row"),
                 columns == 0 ? "" : concat(" and ", counted(columns, "column")), ": ", c_.where);
  }

  void write_errors() {
    const ErrorStats& errors = c_.errors;
    if (errors.pairs() == 0) return;
    text_.folded("ulp: ", ulp_shares_text(c_));
    const bool same_dtype = c_.actual.dtype == c_.expected.dtype;
    const auto rounded = c_.correctly_rounded();
    const std::int64_t right = rounded      ? *rounded
                               : same_dtype ? errors.equal_bits()
                                            : errors.equal_numbers();
    text_.folded(rounded      ? "correctly rounded: "
                 : same_dtype ? "equal bits: "
                              : "equal numbers: ",
                 right, " / ", c_.judged(), " (", percentage_text(right, c_.judged()), ")");
    const auto number = [this](const std::optional<double>& figure, int digits = 3) {
      if (c_.fails_by_nan_alone()) return std::string("nan");
      return figure ? rounded_text(*figure, digits) : "none";
    };
    text_.folded("mean error: ", number(errors.mean()),
                 ", absolute: ", number(errors.mean_absolute()),
                 ", root mean square: ", number(errors.root_mean_square()));
    text_.folded("mean error toward zero: ", number(errors.mean_toward_zero()),
                 ", away from zero: ", number(errors.mean_away_from_zero()));
    text_.folded("cosine: ", number(errors.cosine(), 12),
                 ", signal-to-noise ratio (SQNR): ", number(errors.sqnr(), 4), " dB");
  }

  void write_rows(const MismatchedRows& rows) {
    text_.folded("rows over ", axes_text(rows.axes), ": ", rows.mismatched, " / ", rows.rows,
                 " differ", rows.mismatched == 0 ? "" : concat(", the first is ", row(rows.first)));
  }

  TableLine line_of(const WorstElement& element) const {
    const ElementPair& pair = element.pair;
    TableLine line{place(pair), {}};
    if (c_.rows) line = {row(c_.row_index(pair)), {place(pair)}};
    line.cells.insert(line.cells.end(), {actual(pair), expected(pair)});
    if (const auto& distances = element.distances) {
      line.cells.insert(
          line.cells.end(),
          {ulps_text(distances->ulps, c_.expected.dtype), rounded_text(distances->absolute, 3),
           rounded_text(distances->relative, 3), rounded_text(distances->row_ulps, 3)});
    } else {
      line.cells.insert(line.cells.end(), {"-", "-", "-", "-"});
    }
    line.cells.push_back(element.row_max == kNoneFinite ? "-"
                                                        : significant_text(element.row_max, 3));
    return line;
  }

  void write_worst() {
    const std::vector<WorstElement>& elements = c_.worst.elements();
    if (elements.empty()) return;
    std::vector<TableColumn> columns{{"", "actual"}, {"", "expected"}, {"", "ulp"},    {"", "abs"},
                                     {"", "rel"},    {"", "row-ulp"},  {"", "row max"}};
    if (c_.rows) columns.insert(columns.begin(), {"", "at"});
    std::vector<TableLine> lines;
    lines.reserve(elements.size());
    for (const WorstElement& element : elements) lines.push_back(line_of(element));
    const Table table({"", c_.rows ? "row" : "at"}, columns, each_of(lines));
    text_.folded("worst ", c_.rows ? "rows" : "elements", " by ", name(c_.worst.by()), ":");
    table.write(text_, style_.width, "");
    write_row_max(elements);
  }

  void write_row_max(const std::vector<WorstElement>& elements) {
    const Axes& axes = c_.row_max_axes;
    text_.folded("row max: the greatest |expected|",
                 axes.empty() ? "" : " along " + axes_text(axes),
                 "; row-ulp: abs in ulp of row max");
    // An ulp of a number near zero is next to nothing beside the others of its row.
    constexpr double kNear = 1e-3;
    const auto near = std::find_if(elements.begin(), elements.end(), [&](const WorstElement& e) {
      return e.distances && std::fabs(e.pair.expected.high) < kNear * e.row_max;
    });
    const WorstBy by = c_.worst.by();
    if (near == elements.end() || by == WorstBy::abs || by == WorstBy::row_ulp ||
        !is_floating(c_.expected.dtype)) {
      return;
    }
    text_.folded("near zero ulp and rel say little: at ", place(near->pair), " the difference is ",
                 rounded_text(near->distances->absolute / near->row_max, 3), " of row max");
  }

  void write_mismatches() {
    if (c_.first_mismatches.empty()) return;
    text_.folded("first mismatches:");
    for (const ElementPair& pair : c_.first_mismatches) {
      text_.line("  ", place(pair), ": ", style_.bad(actual(pair)), ", expected ",
                 style_.good(expected(pair)));
    }
  }

  const Comparison& c_;
  TextWriter text_;
  const Style& style_;
};

}  // namespace

void write_text(const Comparison& comparison, bool histogram, const Style& style, ByteSink& bytes) {
  ComparisonText(comparison, {style, bytes}).write(histogram);
}

}  // namespace lnorm
