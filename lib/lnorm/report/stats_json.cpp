#include "lnorm/core/text.hpp"
#include "lnorm/report/json_value.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm {

namespace {

Json head_json(const Stats& stats) {
  Json result = normalization_json("stats", stats.x, stats.out, stats.axes, stats.formula);
  result["weight"] = stats.weight;
  result["zero_centered_weight"] = stats.zero_centered_weight;
  result["bias"] = stats.bias;
  if (stats.given != Stats::Given::nothing) {
    result["given"] = stats.given == Stats::Given::rstd ? "rstd" : "variance";
  }
  if (stats.slice) result["slice"] = json_value(*stats.slice);
  return result;
}

Json row_json(const Stats& stats, std::int64_t number, const StatsRow& row) {
  Json result{{"row", number},
              {"index", index_of(number, row_shape(stats.x.shape, stats.axes))},
              {"non_finite", row.input.non_finite},
              {"output_non_finite", row.output.non_finite}};
  for (const StatsColumn& column : stats.columns) {
    result[std::string(column.tensor)][std::string(column.name)] = json_value(column.of(row));
  }
  return result;
}

Json summary_json(const Stats& stats) {
  const StatsSummary& summary = stats.summary;
  Json result{{"rows", summary.rows},
              {"non_finite_rows", summary.input.rows},
              {"non_finite_elements", summary.input.elements},
              {"output_non_finite_rows", summary.output.rows},
              {"output_non_finite_elements", summary.output.elements}};
  for (std::size_t i = 0; i < stats.columns.size(); ++i) {
    const StatsColumn& column = stats.columns[i];
    result[std::string(column.tensor)][std::string(column.name)] = json_value(summary.columns[i]);
  }
  return result;
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
  const Json tail{{"summary", summary_json(stats)},
                  {"first_non_finite_index", index_json(stats.first_index(stats.summary.input))}};
  if (stats.top) {
    Json rows = Json::array();
    each_reported(stats, [&](std::int64_t number, const StatsRow& row) {
      rows.push_back(row_json(stats, number, row));
    });
    Json report = head_json(stats);
    report["top"] = {{"by", name(stats.top->by)}, {"rows", std::move(rows)}};
    report.update(tail);
    return bytes.write(json_text(report) + '\n');
  }
  JsonList list(head_json(stats), "rows", bytes);
  each_reported(stats, [&](std::int64_t number, const StatsRow& row) {
    list.add(row_json(stats, number, row));
  });
  list.finish(tail);
}

void write_csv(const Stats& stats, ByteSink& bytes) {
  std::string line = "row,non_finite,output_non_finite";
  for (const StatsColumn& column : stats.columns) {
    line += concat(',', column.tensor, '_', column.name);
  }
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
    line += '\n';
    bytes.write(line);
  });
}

}  // namespace lnorm
