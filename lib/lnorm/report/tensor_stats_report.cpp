#include <algorithm>
#include <utility>
#include <vector>

#include "lnorm/core/axes.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/record.hpp"
#include "lnorm/report/reports.hpp"
#include "lnorm/report/table.hpp"

namespace lnorm {

namespace {

struct SetTotal {
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  std::int64_t non_finite = 0;  // tensors
  const NamedStats* first_non_finite = nullptr;

  explicit SetTotal(std::span<const NamedStats> of) : tensors(std::ssize(of)) {
    for (const NamedStats& tensor : of) {
      const TensorStats& stats = tensor.stats;
      const std::int64_t count = stats.rows * stats.row_length;
      elements += count;
      bytes += count * static_cast<std::int64_t>(item_size(stats.x.dtype));
      if (stats.non_finite.rows > 0 && non_finite++ == 0) first_non_finite = &tensor;
    }
  }
};

std::optional<Shape> first_index(const TensorStats& stats) {
  const NonFinite& found = stats.non_finite;
  if (found.first_element < 0) return std::nullopt;
  return index_in_file(stats.x, stats.axes,
                       found.first_row + (stats.slice ? stats.slice->first : 0),
                       found.first_element);
}

// Those that stand out, or all.
std::vector<NamedStats> reported(std::span<const NamedStats> tensors,
                                 const std::optional<Top>& top) {
  if (!top) return {tensors.begin(), tensors.end()};
  TopList<NamedStats> list(top->most);
  for (const NamedStats& tensor : tensors) list.add(score_of_tensor(top->by, tensor.stats), tensor);
  return list.items();
}

class TensorStatsText {
 public:
  TensorStatsText(std::span<const NamedStats> tensors, const std::optional<Top>& top, int digits,
                  TextWriter text)
      : tensors_(tensors),
        top_(top),
        shown_(reported(tensors, top)),
        digits_(digits),
        text_(std::move(text)),
        total_(tensors),
        are_same_dtype_(are_same([](const TensorStats& stats) { return stats.x.dtype; })),
        are_same_shape_(are_same([](const TensorStats& stats) { return stats.x.shape; })) {}

  void write() {
    if (tensors_.empty()) return text_.line("no tensors");
    text_.folded(head_text());
    if (top_) text_.folded(top_text(*top_, "tensor", total_.tensors));
    text_.line();
    write_table();
    text_.line();
    write_total();
  }

 private:
  template <class Of>
  bool are_same(Of of) const {
    return std::all_of(tensors_.begin(), tensors_.end(), [&](const NamedStats& tensor) {
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
      add_part(concat("shape ", to_string(file_shape(first.x))));
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

  // Calls add(column, cell) for every column; what there is not is "-".
  template <class Add>
  void for_each_cell(const TensorStats& stats, Add add) const {
    if (!are_same_dtype_) {
      add(TableColumn{"", "dtype", Align::left}, std::string(name(stats.x.dtype)));
    }
    if (!are_same_shape_) {
      add(TableColumn{"", "shape", Align::left}, to_string(file_shape(stats.x)));
      add(TableColumn{"", "rows"}, stats.slice ? concat(stats.rows, " of ", all_rows(*stats.slice))
                                               : std::to_string(stats.rows));
    }
    // Blank where there are none, so that the others stand out.
    const std::int64_t count = stats.non_finite.elements;
    if (total_.non_finite > 0) {
      add(TableColumn{"", "non-finite"}, count == 0 ? "" : std::to_string(count));
    }
    const std::optional<LargestElement>& largest = stats.largest;
    const DType dtype = stats.x.dtype;
    add(TableColumn{"largest |x|", "x"}, !largest ? "-"
                                         : is_floating(dtype)
                                             ? significant_text(largest->value.high, digits_)
                                             : value_text(largest->value, dtype));
    add(TableColumn{"largest |x|", "at"},
        largest ? to_string(index_of(largest->position, file_shape(stats.x))) : "-");
    const auto add_summary = [&](std::string_view group, const ColumnSummary& column) {
      const auto cell = [&](double value) {
        return column.count == 0 ? "-" : significant_text(value, digits_);
      };
      add(TableColumn{group, "min"}, cell(column.min));
      add(TableColumn{group, "median"}, cell(column.median));
      add(TableColumn{group, "max"}, cell(column.max));
    };
    add_summary("mean", stats.means);
    add_summary("variance", stats.variances);
  }

  void write_table() {
    std::vector<TableColumn> columns;
    for_each_cell(tensors_.front().stats, [&](const TableColumn& column, const std::string&) {
      columns.push_back(column);
    });
    std::vector<TableLine> lines;
    for (const NamedStats& tensor : shown_) {
      TableLine& line = lines.emplace_back(TableLine{printable(tensor.name), {}});
      line.is_bad = tensor.stats.non_finite.rows > 0;
      for_each_cell(tensor.stats, [&](const TableColumn&, const std::string& cell) {
        line.cells.push_back(cell);
      });
    }
    Table table({"", "tensor", Align::left}, columns, each_of(lines));
    constexpr int kMinName = 16;
    const int width = text_.style().width;
    table.shorten_labels(static_cast<std::size_t>(std::max(kMinName, width / 2)));
    table.write(text_, width);
  }

  void write_total() {
    text_.folded(counted(total_.tensors, "tensor"), ", ", counted(total_.elements, "element"), ", ",
                 bytes_text(total_.bytes));
    if (total_.non_finite == 0) return;
    const auto& [name, stats] = *total_.first_non_finite;
    const std::optional<Shape> index = first_index(stats);
    text_.bad("NaN or infinity in ", total_.non_finite, " of ", counted(total_.tensors, "tensor"),
              ", first in ", printable(name), index ? " at " + to_string(*index) : "");
  }

  std::span<const NamedStats> tensors_;
  std::optional<Top> top_;
  std::vector<NamedStats> shown_;
  int digits_;
  TextWriter text_;
  SetTotal total_;
  bool are_same_dtype_;
  bool are_same_shape_;
};

Record record_of(const NamedStats& tensor) {
  const TensorStats& stats = tensor.stats;
  const TensorInfo& x = stats.x;
  const auto& largest = stats.largest;
  const auto part = [](const ColumnSummary& column, double value) {
    return column.count > 0 ? Value(value) : Undefined();
  };
  const ColumnSummary& mean = stats.means;
  const ColumnSummary& variance = stats.variances;
  return {
      {"name", tensor.name, "", "tensor"},
      {"dtype", x.dtype},
      {"shape", file_shape(x)},
      {"axes", file_axes(x, stats.axes), "", "", 1},
      {"ddof", stats.ddof, "", "", 1},
      {"rows", stats.rows},
      {"row_length", stats.row_length},
      {"non_finite_rows", stats.non_finite.rows},
      {"non_finite_elements", stats.non_finite.elements},
      {"first_non_finite_index", first_index(stats), "", "", 1},
      {"mean.count", mean.count, "", "", 1},
      {"mean.min", part(mean, mean.min)},
      {"mean.median", part(mean, mean.median)},
      {"mean.max", part(mean, mean.max)},
      {"variance.count", variance.count, "", "", 1},
      {"variance.min", part(variance, variance.min)},
      {"variance.median", part(variance, variance.median)},
      {"variance.max", part(variance, variance.max)},
      {"largest.value", largest ? Value(Element{largest->value, x.dtype}) : Value(), "", "largest"},
      {"largest.index", largest ? Value(index_of(largest->position, file_shape(x))) : Value()},
      {"slice", if_any(stats.slice), "", kNoColumn}};
}

}  // namespace

void write_text(std::span<const NamedStats> tensors, const std::optional<Top>& top, int digits,
                const Style& style, ByteSink& bytes) {
  TensorStatsText(tensors, top, digits, {style, bytes}).write();
}

void write_json(std::span<const NamedStats> tensors, const std::optional<Top>& top,
                ByteSink& bytes) {
  const SetTotal total(tensors);
  const NamedStats* const first = total.first_non_finite;
  JsonList list("stats", {}, "tensors", bytes, top);
  for (const NamedStats& tensor : reported(tensors, top)) list.add(record_of(tensor));
  list.finish({{"summary.tensors", total.tensors},
               {"summary.elements", total.elements},
               {"summary.bytes", total.bytes},
               {"summary.non_finite_tensors", total.non_finite},
               {"summary.first_non_finite", first ? Value(first->name) : Value()}});
}

void write_csv(std::span<const NamedStats> tensors, const std::optional<Top>& top,
               ByteSink& bytes) {
  bytes.write(csv_names(record_of(NamedStats())));
  for (const NamedStats& tensor : reported(tensors, top)) bytes.write(csv_line(record_of(tensor)));
}

}  // namespace lnorm
