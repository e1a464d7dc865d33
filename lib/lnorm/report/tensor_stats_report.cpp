#include "lnorm/report/tensor_stats_report.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "lnorm/core/slice.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/csv_field.hpp"
#include "lnorm/report/json_value.hpp"
#include "lnorm/report/names.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

using Json = nlohmann::ordered_json;

struct SetTotal {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  std::int64_t non_finite = 0;  // tensors
  std::string first_non_finite;

  void add(const std::string& name, const TensorStats& stats) {
    ++tensors;
    const std::int64_t count = stats.rows * stats.row_length;
    elements += count;
    bytes += count * static_cast<std::int64_t>(item_size(stats.x.dtype));
    if (stats.non_finite.rows > 0 && non_finite++ == 0) first_non_finite = name;
  }
};

class TensorStatsText final : public TensorStatsReport {
 public:
  TensorStatsText(int digits, const Style& style, ByteSink& bytes)
      : digits_(digits), style_(style), bytes_(bytes) {}

  void add(const std::string& name, const TensorStats& stats) override {
    total_.add(name, stats);
    tensors_.push_back({name, stats});
  }

  void finish() override {
    if (tensors_.empty()) return bytes_.write("no tensors\n");
    are_same_dtype_ = are_same([](const TensorStats& stats) { return stats.x.dtype; });
    are_same_shape_ = are_same([](const TensorStats& stats) { return stats.x.shape; });
    bytes_.write(style_.folded(head_text()));
    write_line("");
    write_table();
    write_line("");
    write_total();
  }

 private:
  struct Tensor {
    std::string name;
    TensorStats stats;
  };

  void write_line(const std::string& text) { bytes_.write(text + '\n'); }

  template <class Of>
  bool are_same(Of of) const {
    return std::all_of(tensors_.begin(), tensors_.end(), [&](const Tensor& tensor) {
      return of(tensor.stats) == of(tensors_.front().stats);
    });
  }

  // What is the same for all.
  std::string head_text() const {
    const TensorStats& first = tensors_.front().stats;
    std::string text;
    const auto add_part = [&](const std::string& part) {
      text += (text.empty() ? "" : ", ") + part;
    };
    if (are_same_dtype_) add_part(std::string(name(first.x.dtype)));
    std::string rows = "rows";
    if (are_same_shape_) {
      add_part(concat("shape ", to_string(first.x.shape)));
      const std::string length = counted(first.row_length, "element");
      rows = first.slice ? concat(rows_text(*first.slice), ", of ", length, " each")
                         : concat(counted(first.rows, "row"), " of ", length);
    }
    const std::string along = along_text();
    if (are_same_shape_ || !along.empty()) add_part(rows + along);
    add_part(variances_text(first.ddof));
    return text;
  }

  // Where all rows go along the same axes.
  std::string along_text() const {
    const TensorStats& first = tensors_.front().stats;
    if (are_same([](const TensorStats& stats) { return stats.axes; })) {
      return first.axes.empty() ? "" : " along " + axes_text(first.axes);
    }
    const std::size_t count = last_axes(first);
    if (count == 0 || !are_same(last_axes)) return "";
    return count == 1 ? " along the last axis" : concat(" along the last ", count, " axes");
  }

  // How many axes rows go along if these are the last ones, or else 0. A tensor of no dimensions has the one that
  // any tensor has.
  static std::size_t last_axes(const TensorStats& stats) {
    if (stats.x.shape.empty()) return 1;
    return stats.axes.back() - stats.axes.front() + 1 == stats.axes.size() &&
                   stats.axes.back() + 1 == stats.x.shape.size()
               ? stats.axes.size()
               : 0;
  }

  void write_table() {
    std::vector<TableColumn> columns;
    if (!are_same_dtype_) columns.push_back({"", "dtype", true});
    if (!are_same_shape_) {
      columns.push_back({"", "shape", true});
      columns.push_back({"", "rows"});
    }
    if (total_.non_finite > 0) columns.push_back({"", "non-finite"});
    columns.insert(columns.end(), {{"largest |x|", "x"}, {"largest |x|", "at"}});
    for (const std::string_view group : {"mean", "variance"}) {
      columns.insert(columns.end(), {{group, "min"}, {group, "median"}, {group, "max"}});
    }
    Table table("tensor", columns, true);
    std::vector<TableLine> lines;
    lines.reserve(tensors_.size());
    for (const Tensor& tensor : tensors_) lines.push_back(line_of(tensor));
    for (const TableLine& line : lines) table.measure(line);
    bool first = true;
    for (const Table::Block block : table.blocks(style_.width)) {
      if (!first) write_line("");
      first = false;
      for (const std::string& line : table.head(block)) write_line(style_.heading(line));
      for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string text = table.text(lines[i], block);
        write_line(tensors_[i].stats.non_finite.rows > 0 ? style_.bad(text) : text);
      }
    }
  }

  TableLine line_of(const Tensor& tensor) const {
    const TensorStats& stats = tensor.stats;
    constexpr int kMinName = 16;
    const auto most = static_cast<std::size_t>(std::max(kMinName, style_.width / 2));
    TableLine line{abbreviated(printable(tensor.name), most), {}};
    const auto add_cell = [&](std::string cell) { line.cells.push_back(std::move(cell)); };
    if (!are_same_dtype_) add_cell(std::string(name(stats.x.dtype)));
    if (!are_same_shape_) {
      add_cell(to_string(stats.x.shape));
      add_cell(stats.slice ? concat(stats.rows, " of ", all_rows(*stats.slice))
                           : std::to_string(stats.rows));
    }
    // Blank where there are none, so that the others stand out.
    if (total_.non_finite > 0) {
      const std::int64_t count = stats.non_finite.elements;
      add_cell(count == 0 ? "" : std::to_string(count));
    }
    if (stats.largest) {
      const Number value = stats.largest->value;
      add_cell(is_floating(stats.x.dtype) ? significant_text(value.high, digits_)
                                          : value_text(value, stats.x.dtype));
      add_cell(to_string(index_of(stats.largest->position, stats.x.shape)));
    } else {
      line.cells.insert(line.cells.end(), 2, "-");
    }
    for (const ColumnSummary& column : {stats.means, stats.variances}) {
      for (const double value : {column.min, column.median, column.max}) {
        add_cell(column.count == 0 ? "-" : significant_text(value, digits_));
      }
    }
    return line;
  }

  void write_total() {
    bytes_.write(
        style_.folded(concat(counted(total_.tensors, "tensor"), ", ",
                             counted(total_.elements, "element"), ", ", bytes_text(total_.bytes))));
    if (total_.non_finite == 0) return;
    std::string text = style_.folded(concat("NaN or infinity in ", total_.non_finite, " of ",
                                            counted(total_.tensors, "tensor"), ", first in ",
                                            printable(total_.first_non_finite)));
    text.pop_back();  // color ends before the line does
    write_line(style_.bad(text));
  }

  int digits_;
  Style style_;
  ByteSink& bytes_;
  std::vector<Tensor> tensors_;
  SetTotal total_;
  bool are_same_dtype_ = false;
  bool are_same_shape_ = false;
};

class JsonReport final : public TensorStatsReport {
 public:
  explicit JsonReport(ByteSink& bytes) : bytes_(bytes) {
    bytes_.write(R"({"schema":1,"command":"stats","tensors":[)");
  }

  void add(const std::string& name, const TensorStats& stats) override {
    if (total_.tensors > 0) bytes_.write(",");
    total_.add(name, stats);
    const TensorInfo& x = stats.x;
    Json largest;
    if (stats.largest) {
      largest = {{"value", json_value(stats.largest->value, x.dtype)},
                 {"index", index_of(stats.largest->position, x.shape)}};
    }
    Json line{{"name", name},
              {"dtype", lnorm::name(x.dtype)},
              {"shape", x.shape},
              {"axes", stats.axes},
              {"ddof", stats.ddof},
              {"rows", stats.rows},
              {"row_length", stats.row_length},
              {"non_finite_rows", stats.non_finite.rows},
              {"non_finite_elements", stats.non_finite.elements},
              {"mean", json_value(stats.means)},
              {"variance", json_value(stats.variances)},
              {"largest", largest}};
    if (stats.slice) line["slice"] = json_value(*stats.slice);
    bytes_.write(json_text(line));
  }

  void finish() override {
    bytes_.write("],\"summary\":");
    bytes_.write(json_text(
        {{"tensors", total_.tensors},
         {"elements", total_.elements},
         {"bytes", total_.bytes},
         {"non_finite_tensors", total_.non_finite},
         {"first_non_finite", total_.non_finite > 0 ? Json(total_.first_non_finite) : Json()}}));
    bytes_.write("}\n");
  }

 private:
  ByteSink& bytes_;
  SetTotal total_;
};

class CsvReport final : public TensorStatsReport {
 public:
  explicit CsvReport(ByteSink& bytes) : bytes_(bytes) {
    bytes_.write(
        "name,dtype,shape,rows,row_length,non_finite_rows,non_finite_elements,mean_min,mean_median,"
        "mean_max,variance_min,variance_median,variance_max,largest,largest_index\n");
  }

  void add(const std::string& name, const TensorStats& stats) override {
    const TensorInfo& x = stats.x;
    std::string line = concat(csv_field(name), ',', lnorm::name(x.dtype), ',',
                              csv_field(to_string(x.shape)), ',', stats.rows, ',', stats.row_length,
                              ',', stats.non_finite.rows, ',', stats.non_finite.elements);
    for (const ColumnSummary& column : {stats.means, stats.variances}) {
      for (const double value : {column.min, column.median, column.max}) {
        line += ',';
        if (column.count > 0) line += value_text(value);
      }
    }
    line += ',';
    if (stats.largest) {
      line += concat(value_text(stats.largest->value, x.dtype), ',',
                     csv_field(to_string(index_of(stats.largest->position, x.shape))));
    } else {
      line += ',';
    }
    bytes_.write(line + '\n');
  }

  void finish() override {}

 private:
  ByteSink& bytes_;
};

}  // namespace

std::unique_ptr<TensorStatsReport> make_tensor_stats_text(int digits, const Style& style,
                                                          ByteSink& bytes) {
  return std::make_unique<TensorStatsText>(digits, style, bytes);
}

std::unique_ptr<TensorStatsReport> make_tensor_stats_json(ByteSink& bytes) {
  return std::make_unique<JsonReport>(bytes);
}

std::unique_ptr<TensorStatsReport> make_tensor_stats_csv(ByteSink& bytes) {
  return std::make_unique<CsvReport>(bytes);
}

}  // namespace lnorm
