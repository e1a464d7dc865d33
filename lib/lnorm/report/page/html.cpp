#include "lnorm/report/page/html.hpp"

#include <cmath>
#include <utility>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"

namespace lnorm::page {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

Cell number_cell(double value) {
  constexpr int kDigits = 5;
  if (std::isnan(value)) return {"-", "nan"};
  return {significant_text(value, kDigits), value_text(value)};
}

std::string html(const Table& table) {
  std::string text = R"(<div class="scroll" tabindex="0" role="group" aria-label=")" +
                     escaped(table.caption) + "\"><table><caption>" + escaped(table.caption) +
                     "</caption>\n<thead><tr>";
  for (const Column& column : table.columns) {
    text += column.is_text ? R"(<th scope="col" class="text">)" : R"(<th scope="col">)";
    text += table.sorts ? "<button type=\"button\">" + escaped(column.title) + "</button>"
                        : escaped(column.title);
    text += "</th>";
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : table.rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Cell& cell = row[i];
      text += i == 0 ? "<th scope=\"row\"" : "<td";
      if (i > 0 && table.columns[i].is_text) text += " class=\"text\"";
      if (!cell.value.empty()) text += " data-value=\"" + escaped(cell.value) + '"';
      text += '>' + (cell.html.empty() ? escaped(cell.text) : cell.html);
      text += i == 0 ? "</th>" : "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string html(const Facts& facts) {
  std::string text = "<dl>\n";
  for (const auto& [name, what] : facts) {
    text += "<dt>" + escaped(name) + "</dt><dd>" + escaped(what) + "</dd>\n";
  }
  return text + "</dl>\n";
}

}  // namespace lnorm::page
