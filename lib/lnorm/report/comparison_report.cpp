#include <algorithm>
#include <cmath>
#include <cstdint>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/in_order.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/record.hpp"
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
    text_.folded("rows over ", axes_text(file_axes(c_.actual, rows.axes)), ": ", rows.mismatched,
                 " / ", rows.rows, " differ",
                 rows.mismatched == 0 ? "" : concat(", the first is ", row(rows.first)));
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
                 axes.empty() ? "" : " along " + axes_text(file_axes(c_.actual, axes)),
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

// A whole number without a point, as counts are.
Value whole(const std::optional<double>& bound) {
  if (!bound) return {};
  if (*bound == std::floor(*bound) && *bound < 0x1p53) return static_cast<std::int64_t>(*bound);
  return *bound;
}

Value bound_value(const Criteria& criteria, const CriterionRow& row) {
  if (row.criterion == Criterion::max_ulp) return whole(criteria.max_ulp);
  if (!row.counts()) return criteria.*row.bound;
  const std::optional<MismatchLimit>& limit = criteria.max_mismatched;
  if (limit && limit->is_percentage) return bound_text(criteria, row);
  return limit ? whole(limit->value) : Value();
}

std::vector<Record> failures_of(const Comparison& c) {
  std::vector<Record> records;
  for (const auto& [criterion, found] : c.failures()) {
    const CriterionRow& row = row_of(criterion);
    records.push_back(
        {{"criterion", row.name}, {"found", row.counts() ? whole(found) : Value(found)}});
  }
  return records;
}

std::vector<Record> distribution_of(const UlpCounts& counts) {
  std::vector<Record> records;
  std::int64_t within = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    within += counts.count(i);
    records.push_back({{"at_most", whole(UlpCounts::bound(i))}, {"elements", within}});
  }
  return records;
}

Record pair_record(const Comparison& c, const ElementPair& pair) {
  return {{"index", c.index(pair), "at"},
          {"actual", Element{pair.actual, c.actual.dtype}, "actual"},
          {"expected", Element{pair.expected, c.expected.dtype}, "expected"}};
}

std::vector<Record> worst_of(const Comparison& c) {
  std::vector<Record> records;
  for (const auto& [pair, distances, row_max] : c.worst.elements()) {
    Record& record = records.emplace_back(pair_record(c, pair));
    if (c.rows) record.push_back({"row", c.row_index(pair), "row"});
    const auto distance = [found = &distances](auto Distances::*of) {
      return *found ? Value((**found).*of) : Value();
    };
    record.insert(record.end(),
                  {{"ulp", distance(&Distances::ulps), "ulp"},
                   {"absolute", distance(&Distances::absolute), "absolute"},
                   {"relative", distance(&Distances::relative), "relative"},
                   {"row_ulp", distance(&Distances::row_ulps), "row-ulp"},
                   {"row_max", row_max != kNoneFinite ? Value(row_max) : Value(), "row max"}});
  }
  return records;
}

template <class T>
Value greatest_of(const Comparison& c, const std::optional<Greatest<T>>& greatest) {
  if (!greatest) return {};
  Record record = pair_record(c, greatest->at);
  record.insert(record.begin(), {"value", greatest->value});
  return record;
}

// In CSV a line has a name, and what came out.
Record line_of(std::string_view name, std::string_view result, const Comparison& c = Comparison()) {
  Record line = record_of(c);
  line.insert(line.begin(), {{"", name, "", "name"}, {"", result, "", "result"}});
  return line;
}
Record line_of(std::string_view name, const Comparison& c) {
  return line_of(name, c.equal() ? "agree" : "differ", c);
}

JunitCase case_of(const std::string& name, const Comparison& c) {
  JunitCase result{name};
  if (c.equal()) return result;
  if (!c.same_shape) {
    result.failure =
        concat("shape ", to_string(c.actual.shape), ", expected ", to_string(c.expected.shape));
    return result;
  }
  result.failure = concat("criteria fail: ", failures_text(c.criteria, c.failures()));
  result.lines.push_back(concat("mismatched: ", c.mismatched, " / ", c.compared()));
  if (c.absolute) {
    result.lines.push_back(
        concat("greatest absolute difference: ",
               c.fails_by_nan_alone() ? "nan" : rounded_text(c.absolute->value, 9)));
  }
  return result;
}

constexpr std::size_t kOfNames = 2;  // figures that are there if nothing was compared

}  // namespace

void write_text(const Comparison& comparison, bool histogram, const Style& style, ByteSink& bytes) {
  ComparisonText(comparison, {style, bytes}).write(histogram);
}

Record record_of(const Criteria& criteria) {
  const auto& tolerance = criteria.tolerance;
  Record record{{"rtol", tolerance ? Value(tolerance->rtol) : Value()},
                {"atol", tolerance ? Value(tolerance->atol) : Value()}};
  for (const CriterionRow& row : criterion_rows()) {
    if (row.criterion <= Criterion::tolerance) continue;
    record.push_back({row.name, bound_value(criteria, row)});
    if (row.criterion == Criterion::max_ulp) record.push_back({"equal_nan", criteria.equal_nan});
  }
  return record;
}

Record record_of(const Comparison& c) {
  const ErrorStats& errors = c.errors;
  // Of elements nothing is known where the shapes differ.
  const auto counted = [&](Value value) { return c.same_shape ? std::move(value) : Value(); };
  std::vector<Record> mismatches;
  for (const ElementPair& pair : c.first_mismatches) mismatches.push_back(pair_record(c, pair));
  const bool same_dtype = c.actual.dtype == c.expected.dtype;
  const std::optional<MismatchedRows>& rows = c.rows;
  return {
      {"actual.name", c.actual.name, "", kNoColumn},
      {"expected.name", c.expected.name, "", kNoColumn},
      {"actual.dtype", c.actual.dtype},
      {"expected.dtype", c.expected.dtype},
      {"actual.shape", file_shape(c.actual)},
      {"expected.shape", file_shape(c.expected)},
      {"equal", c.equal(), "", kNoColumn},
      {"elements", counted(c.compared())},
      {"left_out", counted(c.left_out), "left out by the mask", "", 6},
      {"mismatched", counted(c.mismatched)},
      {"tolerance", record_of(c.criteria), "", kNoColumn},
      {"failed", failures_of(c), "", "", 1},
      {"greatest_absolute_difference", greatest_of(c, c.absolute), "greatest absolute difference"},
      {"greatest_relative_difference", greatest_of(c, c.relative), "greatest relative difference"},
      {"greatest_ulp_distance", greatest_of(c, c.ulps), "greatest distance in ulp"},
      {"greatest_row_ulp_distance", greatest_of(c, c.row_ulps),
       "greatest distance in ulp of the row's greatest |expected|", "", 5},
      {"non_finite_one_side", counted(c.non_finite_one_side), "NaN or infinity on one side only"},
      {"rounded_to_infinity", counted(c.rounded_to_infinity), "of them as expected is rounded", "",
       6},
      {"non_finite_differing", counted(c.non_finite_differing),
       "NaN or infinity on both sides, not equal"},
      {"errors.pairs", counted(errors.pairs()), "", "pairs", 2},
      {"errors.equal_bits", counted(same_dtype ? Value(errors.equal_bits()) : Value()),
       "equal bits", "equal_bits", 6},
      {"errors.equal_numbers", counted(errors.equal_numbers()), "equal numbers", "equal_numbers",
       2},
      {"errors.correctly_rounded", counted(c.correctly_rounded()), "correctly rounded",
       "correctly_rounded", 3},
      {"errors.mean", counted(errors.mean()), "mean error", "mean_error", 2},
      {"errors.mean_absolute", counted(errors.mean_absolute()), "mean absolute error",
       "mean_absolute_error", 2},
      {"errors.mean_toward_zero", counted(errors.mean_toward_zero()), "mean error toward zero",
       "mean_error_toward_zero", 4},
      {"errors.mean_away_from_zero", counted(errors.mean_away_from_zero()),
       "mean error away from zero", "mean_error_away_from_zero", 4},
      {"errors.root_mean_square", counted(errors.root_mean_square()), "root mean square error",
       "root_mean_square_error", 2},
      {"errors.cosine", counted(errors.cosine()), "cosine similarity", "cosine", 2},
      {"errors.sqnr_db", counted(errors.sqnr()), "SQNR in dB", "sqnr_db", 2},
      {"ulp.dtype", counted(c.ulp_dtype()), "", "", 6},
      {"ulp.distribution", counted(distribution_of(c.ulp_counts)), "", kNoColumn},
      {"mismatches", std::move(mismatches), "", kNoColumn},
      {"where", c.where.empty() ? std::vector<std::string>() : std::vector{c.where}, "", "", 6},
      {"affected_rows", counted(c.affected_rows), "", "", 6},
      {"affected_columns", counted(c.affected_columns), "", "", 6},
      {"fit.scale", c.fit ? Value(c.fit->scale) : Value(), "", "", 6},
      {"fit.offset", c.fit ? Value(c.fit->offset) : Value(), "", "", 6},
      {"worst.by", counted(c.worst.by()), "", kNoColumn},
      {"worst.row_max_axes", counted(file_axes(c.actual, c.row_max_axes)), "", kNoColumn},
      {"worst.elements", counted(worst_of(c)), "", kNoColumn},
      {"slice", if_any(c.slice), "", kNoColumn},
      {"rows.axes", rows ? Value(file_axes(c.actual, rows->axes)) : Absent(), "", kNoColumn},
      {"rows.rows", rows ? Value(rows->rows) : Absent(), "", "rows", 6},
      {"rows.mismatched", rows ? Value(rows->mismatched) : Absent(), "", "", 6},
      {"rows.first",
       !rows                  ? Absent()
       : rows->mismatched > 0 ? Value(rows->first)
                              : Value(),
       "", kNoColumn},
  };
}

void write_json(const Comparison& comparison, ByteSink& bytes) {
  write_json("compare", record_of(comparison), bytes);
}

void write_json(const SetComparison& set, ByteSink& bytes) {
  JsonList list(
      "compare",
      {{"actual.name", set.actual}, {"expected.name", set.expected}, {"equal", set.equal()}},
      "tensors", bytes);
  for (const PairComparison& pair : set.pairs) {
    Record line = pair.comparison ? record_of(*pair.comparison) : Record{{"error", pair.error}};
    line.insert(line.begin(), {"name", pair.name});
    list.add(line);
  }
  const auto name_of = [&](const std::optional<std::size_t>& pair) {
    return pair ? Value(set.pairs[*pair].name) : Value();
  };
  list.finish({{"actual_only", set.actual_only},
               {"expected_only", set.expected_only},
               {"common", set.common},
               {"summary.tensors", set.pairs.size()},
               {"summary.agree", set.agreeing()},
               {"summary.differ", set.differing()},
               {"summary.errors", set.unreadable()},
               {"summary.first", name_of(set.first())},
               {"summary.worst", name_of(set.worst())},
               {"summary.by", set.by}});
}

void write_csv(const Comparison& comparison, ByteSink& bytes) {
  const Record line = line_of(comparison.actual.name, comparison);
  bytes.write(csv_names(line) + csv_line(line));
}

void write_rows_csv(const Comparison& comparison, const InParallel& in_parallel, ByteSink& bytes) {
  const Shape rows = row_shape(comparison.actual.shape, comparison.row_max_axes);
  enum RowValue : std::size_t { kRow, kElements, kMismatched, kMaxAbs, kIndex };
  const Record line{{"row", Slot{kRow}},
                    {"elements", Slot{kElements}},
                    {"mismatched", Slot{kMismatched}},
                    {"max_abs", Slot{kMaxAbs}},
                    {"index", Slot{kIndex}, "", rows.size() > 1 ? "index" : kNoColumn}};
  bytes.write(csv_names(line));
  const ItemForm form(ItemForm::Format::csv, line);
  InOrder<const RowErrors*> lines(
      in_parallel,
      [&](const RowErrors* row, std::string& text) {
        form.append(text, [&](std::size_t value, const ItemForm::Place& place) {
          if (value == kMaxAbs) {
            return place.put(row->max_abs == kNoneFinite ? Value() : row->max_abs);
          }
          if (value == kIndex) return place.put(index_of(row->row, rows));
          place.put(value == kRow        ? row->row
                    : value == kElements ? row->elements
                                         : row->mismatched);
        });
      },
      [&](std::string_view text) { bytes.write(text); });
  for (const RowErrors& row : comparison.failed_rows) lines.add(&row);
  lines.flush();
}

void write_csv(const SetComparison& set, ByteSink& bytes) {
  bytes.write(csv_names(line_of("", "")));
  const auto write_name = [&](std::string_view name, std::string_view result) {
    bytes.write(csv_line(line_of(name, result), kOfNames));
  };
  for (const PairComparison& pair : set.pairs) {
    pair.comparison ? bytes.write(csv_line(line_of(pair.name, *pair.comparison)))
                    : write_name(pair.name, "error");
  }
  for (const std::string& name : set.actual_only) write_name(name, "actual_only");
  for (const std::string& name : set.expected_only) write_name(name, "expected_only");
}

void write_junit(const Comparison& comparison, ByteSink& bytes) {
  write_junit("compare", "differs", {case_of(comparison.actual.name, comparison)}, bytes);
}

void write_junit(const SetComparison& set, ByteSink& bytes) {
  std::vector<JunitCase> cases;
  for (const PairComparison& pair : set.pairs) {
    cases.push_back(pair.comparison ? case_of(pair.name, *pair.comparison)
                                    : JunitCase{.name = pair.name, .error = pair.error});
  }
  const auto add = [&](const std::vector<std::string>& names, const std::string& set_name) {
    for (const std::string& name : names) {
      JunitCase& one = cases.emplace_back(JunitCase{name});
      (set.common ? one.skipped : one.failure) = concat("only in ", set_name);
    }
  };
  add(set.actual_only, set.actual);
  add(set.expected_only, set.expected);
  write_junit("compare", "differs", cases, bytes);
}

}  // namespace lnorm
