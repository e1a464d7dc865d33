#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lnorm {

struct TableColumn {
  std::string_view group;  // is printed over the first of its columns
  std::string_view name;
  bool is_text = false;  // at the left
};

struct TableLine {
  std::string label;
  std::vector<std::string> cells;
};

// A table for people, of numbers above all: points stand under points, and columns that do not fit beside the others
// stand below them, beside the labels again. Its lines are not held: they are shown to it twice.
class Table {
 public:
  // label: the name of the lines' labels, which stand at the right, or at the left if they are text.
  Table(std::string label, std::vector<TableColumn> columns, bool labels_are_text = false);

  // First, every line.
  void measure(const TableLine& line);

  // Successive columns that stand side by side.
  struct Block {
    std::size_t begin;
    std::size_t end;
  };

  // Groups stay together where one of them fits.
  std::vector<Block> blocks(int width) const;

  // The names of the columns, over them those of their groups if there are any; lines without newlines at
  // their ends.
  std::vector<std::string> head(Block block) const;
  std::string text(const TableLine& line, Block block) const;

 private:
  struct Width {
    std::size_t before = 0;  // the point
    std::size_t after = 0;
    std::size_t all = 0;
  };

  std::string labeled(const std::string& label) const;
  std::size_t gap(std::size_t column, Block block) const;
  std::size_t width(Block block) const;

  std::string label_;
  std::vector<TableColumn> columns_;
  bool labels_are_text_;
  std::size_t label_width_;
  std::vector<Width> widths_;
};

}  // namespace lnorm
