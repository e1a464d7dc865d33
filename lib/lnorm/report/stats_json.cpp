#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/record.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm {

namespace {

// Adds the numbers that the report's columns have.
void add_columns(const Stats& stats, const std::function<Value(std::size_t)>& value_of,
                 Record& record) {
  for (std::size_t i = 0; i < stats.columns.size(); ++i) {
    const StatsColumn& column = stats.columns[i];
    if (record.back().key != column.tensor) record.push_back({column.tensor, Record()});
    std::get<Record>(record.back().value).push_back({column.name, value_of(i)});
  }
}

Record record_of(const Stats& stats, std::int64_t number, const StatsRow& row) {
  Record record{{"row", number},
                {"index", index_of(number, row_shape(stats.x.shape, stats.axes))},
                {"non_finite", row.input.non_finite},
                {"output_non_finite", row.output.non_finite}};
  add_columns(
      stats, [&](std::size_t i) { return stats.columns[i].of(row); }, record);
  return record;
}

Record record_of(const Stats& stats, const StatsSummary& summary) {
  Record record{{"rows", summary.rows},
                {"non_finite_rows", summary.input.rows},
                {"non_finite_elements", summary.input.elements},
                {"output_non_finite_rows", summary.output.rows},
                {"output_non_finite_elements", summary.output.elements}};
  add_columns(
      stats, [&](std::size_t i) { return summary.columns[i]; }, record);
  return record;
}

// The rows that are reported, with their numbers in the whole tensor.
void each_reported(const Stats& stats,
                   const std::function<void(std::int64_t number, const StatsRow& row)>& see) {
  if (stats.top) {
    for (const NumberedRow& row : top_rows(stats)) see(stats.row_number(row.number), row.row);
    return;
  }
  std::int64_t number = stats.row_number(0);
  stats.each_row(0, stats.summary.rows, [&](const StatsRow& row) { see(number++, row); });
}

}  // namespace

void write_json(const Stats& stats, ByteSink& bytes) {
  Record report = normalization_record(stats.x, stats.out, stats.axes, stats.formula);
  report.insert(report.end(),
                {{"weight", stats.weight},
                 {"zero_centered_weight", stats.zero_centered_weight},
                 {"bias", stats.bias},
                 {"given", stats.given == Stats::Given::nothing
                               ? Absent()
                               : Value(stats.given == Stats::Given::rstd ? "rstd" : "variance")},
                 {"slice", if_any(stats.slice)}});
  const Record tail{{"summary", record_of(stats, stats.summary)},
                    {"first_non_finite_index", stats.first_index(stats.summary.input)}};
  JsonList list("stats", report, "rows", bytes, stats.top);
  each_reported(stats, [&](std::int64_t number, const StatsRow& row) {
    list.add(record_of(stats, number, row));
  });
  list.finish(tail);
}

void write_csv(const Stats& stats, ByteSink& bytes) {
  std::string line = "row,non_finite,output_non_finite";
  for (const StatsColumn& column : stats.columns) {
    line += concat(',', column.tensor, '_', column.name);
  }
  const Shape rows = row_shape(stats.x.shape, stats.axes);
  if (rows.size() > 1) line += ",index";
  bytes.write(line + '\n');
  each_reported(stats, [&](std::int64_t number, const StatsRow& row) {
    line = std::to_string(number);
    for (const std::int64_t count : {row.input.non_finite, row.output.non_finite}) {
      line += ',';
      line += std::to_string(count);
    }
    for (const StatsColumn& column : stats.columns) {
      line += ',';
      append_value(column.of(row), line);
    }
    if (rows.size() > 1) line += concat(",\"", to_string(index_of(number, rows)), '"');
    line += '\n';
    bytes.write(line);
  });
}

}  // namespace lnorm
