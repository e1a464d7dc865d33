#include <cmath>
#include <cstdint>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/comparison_words.hpp"
#include "lnorm/report/junit.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/record.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm {

namespace {

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
        concat("greatest absolute difference: ", rounded_text(c.absolute->value, 9)));
  }
  return result;
}

constexpr std::size_t kOfNames = 2;  // figures that are there if nothing was compared

}  // namespace

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
      {"worst.row_max_axes", counted(c.row_max_axes), "", kNoColumn},
      {"worst.elements", counted(worst_of(c)), "", kNoColumn},
      {"slice", if_any(c.slice), "", kNoColumn},
      {"rows.axes", rows ? Value(rows->axes) : Absent(), "", kNoColumn},
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

void write_rows_csv(const Comparison& comparison, ByteSink& bytes) {
  const Shape rows = row_shape(comparison.actual.shape, comparison.row_max_axes);
  const auto record = [&](const RowErrors& row) -> Record {
    return {{"row", row.row},
            {"elements", row.elements},
            {"mismatched", row.mismatched},
            {"max_abs", row.max_abs == kNoneFinite ? Value() : row.max_abs},
            {"index", index_of(row.row, rows), "", rows.size() > 1 ? "index" : kNoColumn}};
  };
  bytes.write(csv_names(record({})));
  for (const RowErrors& row : comparison.failed_rows) bytes.write(csv_line(record(row)));
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
                                    : JunitCase{.name = pair.name, .skipped = pair.error});
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
