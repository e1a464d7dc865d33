#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lnorm/report/style.hpp"

namespace lnorm {

// A text, followed by blanks up to a width in characters of UTF-8.
std::string padded(std::string text, std::size_t width);

// A name of at most that many characters of UTF-8, at least 5: "..." stands for the middle of its longest parts between
// dots and slashes, so that numbers of layers stay; where that is not enough, for the middle of all.
std::string abbreviated(std::string_view name, std::size_t most);

// How entries stand under each other. By points: numbers with their points, anything else at the right.
enum class Align { points, right, left };

struct TableColumn {
  std::string_view group;  // is printed over the first of its columns
  std::string_view name;
  Align align = Align::points;
  std::size_t most = std::numeric_limits<std::size_t>::max();  // wider entries stand out
};

struct TableLine {
  std::string label;
  std::vector<std::string> cells;  // of the first columns
  std::string remark = {};         // behind them
  bool is_bad = false;             // has the color of what is bad
};

// Calls see with every line, in order.
using EachLine = std::function<void(const std::function<void(const TableLine&)>& see)>;
EachLine each_of(const std::vector<TableLine>& lines);

// A table for people, of numbers above all: columns that do not fit beside the others stand below them, beside the labels
// again. Its lines are not held: they are shown to it twice.
class Table {
 public:
  Table(TableColumn label, std::vector<TableColumn> columns, EachLine lines);

  // The width of all columns side by side, and of the widest remark behind a line with all cells.
  std::size_t width() const;

  // Labels that are longer are abbreviated from now on.
  void shorten_labels(std::size_t most);
  std::size_t label_width() const noexcept { return label_width_; }

  // width: of the place. between: what stands between columns and those that do not fit beside them.
  void write(TextWriter& text, int width, std::string_view between = "\n") const;

 private:
  struct Width {
    std::size_t before = 0;  // the point
    std::size_t after = 0;
    std::size_t all = 0;
  };

  // Successive columns that stand side by side.
  struct Block {
    std::size_t begin;
    std::size_t end;
  };

  void measure(const TableLine& line);
  std::vector<Block> blocks(std::size_t width) const;
  std::vector<std::string> head(Block block) const;
  std::string text(const TableLine& line, Block block) const;
  std::string labeled(const std::string& label) const;
  std::size_t gap(std::size_t column, Block block) const;
  std::size_t width(Block block) const;

  TableColumn label_;
  std::vector<TableColumn> columns_;
  EachLine lines_;
  std::size_t label_width_;
  bool shortens_labels_ = false;
  std::vector<Width> widths_;
  std::size_t remark_width_ = 0;
};

}  // namespace lnorm
