#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Text as HTML.
namespace lnorm::page {

// What came from outside, as the text of an element or the value of an attribute in double quotes. What cannot be
// printed is shown as in messages.
std::string escaped(std::string_view text);

// A cell of a table: what is read, and what it is sorted by if that is another text.
struct Cell {
  std::string text;
  std::string value = {};
  std::string html = {};  // in place of the text
};
Cell number_cell(double value);

struct Column {
  std::string title;
  bool is_text = false;  // aligned to the left
};

// The first cell of a row is its head.
struct Table {
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  bool sorts = false;  // by a click on a column's title
};
std::string html(const Table& table);

// Names and what they stand for.
using Facts = std::vector<std::pair<std::string, std::string>>;
std::string html(const Facts& facts);

}  // namespace lnorm::page
