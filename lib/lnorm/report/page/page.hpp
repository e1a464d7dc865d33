#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/io/byte_sink.hpp"

// A page to look at: one HTML file that needs no other, nor a network.
namespace lnorm::page {

// A cell of a table: what is read, and what it is sorted by if that is another text.
struct Cell {
  std::string text;
  std::string value = {};
  std::string html = {};  // in place of the text
};
Cell number_cell(double value);
// A link to a section, by its id; without one the text alone.
Cell link_cell(const std::string& text, const std::string& section);

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

struct Figure;  // figure.hpp

// A specification by itself, under a name that is fit for a file.
struct Specification {
  std::string name;
  std::string json;
};

// A part of a page under a heading.
class Section {
 public:
  // id: unique in the page. title: nothing for the part before the first heading.
  Section(std::string id, std::string_view title);

  void heading(std::string_view title);
  void paragraph(std::string_view text, std::string_view kind = {});
  void facts(const Facts& facts) { html_ += page::html(facts); }
  // Facts and a table side by side.
  void facts(const Facts& facts, const Table& table);
  void table(const Table& table) { html_ += page::html(table); }
  enum class Layout { two, three };
  // What a click on a row selects is told to figures that have a signal "selected".
  void figures(const std::vector<Figure>& figures, Layout layout = Layout::two);
  void html(std::string_view text) { html_ += text; }

  const std::string& id() const noexcept { return id_; }
  std::string text() const;
  // The specifications of all figures.
  const std::vector<Specification>& specifications() const noexcept { return specifications_; }

 private:
  std::string id_;
  std::string html_;
  std::vector<Specification> specifications_;
};

// title: of the page. made_by: of which command.
void write_page(std::string_view title, std::string_view made_by,
                const std::vector<Section>& sections, ByteSink& bytes);

}  // namespace lnorm::page
