#include "lnorm/report/page/page.hpp"

#include <algorithm>
#include <cmath>

#include "lnorm/core/text.hpp"
#include "lnorm/report/numbers.hpp"
#include "lnorm/report/page/assets.hpp"
#include "lnorm/report/page/figure.hpp"

namespace lnorm::page {

namespace {

// JSON that a script element may hold: nothing in it ends the element.
std::string script_text(const std::string& text) {
  std::string result;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('<', begin)) != text.npos; begin = end + 1) {
    result.append(text, begin, end - begin).append("\\u003c");
  }
  return result.append(text, begin);
}

// json: the specification.
std::string html_of(const Figure& figure, const std::string& id, const std::string& json) {
  const Json signals = figure.spec.value("signals", Json::array());
  const bool selects = std::any_of(signals.begin(), signals.end(),
                                   [](const Json& signal) { return signal["name"] == "selected"; });
  return concat("<figure id=\"", id, "\"><figcaption>", escaped(figure.title),
                figure.note.empty() ? "" : concat("<p>", escaped(figure.note), "</p>"),
                "</figcaption>\n<form class=\"choice\"></form>\n<div class=\"plot\" role=\"img\" "
                "aria-label=\"",
                escaped(figure.spec["description"].get<std::string>()), '"',
                selects ? R"( data-selected="0")" : "",
                "></div>\n<details><summary>Numbers</summary>",
                R"(<div class="scroll" tabindex="0" role="group" aria-label="Numbers: )",
                escaped(figure.title), "\"></div></details>\n<script type=\"application/json\">",
                script_text(json), "</script></figure>\n");
}

}  // namespace

Cell number_cell(double value) {
  constexpr int kDigits = 5;
  if (std::isnan(value)) return {"-", "nan"};
  return {significant_text(value, kDigits), value_text(value)};
}

Cell link_cell(const std::string& text, const std::string& section) {
  if (section.empty()) return {text};
  return {text, "", "<a href=\"#" + section + "\">" + escaped(text) + "</a>"};
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

Section::Section(std::string id, std::string_view title) : id_(std::move(id)) {
  if (!title.empty()) html_ = "<h2>" + escaped(title) + "</h2>\n";
}

void Section::heading(std::string_view title) { html_ += "<h3>" + escaped(title) + "</h3>\n"; }

void Section::paragraph(std::string_view text, std::string_view kind) {
  html_ += kind.empty() ? "<p>" : concat("<p class=\"", kind, "\">");
  html_ += escaped(text) + "</p>\n";
}

void Section::facts(const Facts& facts, const Table& table) {
  html_ += concat("<div class=\"grid\">\n<div>\n", page::html(facts), "</div>\n<div>\n",
                  page::html(table), "</div>\n</div>\n");
}

void Section::figures(const std::vector<Figure>& figures, Layout layout) {
  html_ += layout == Layout::three ? "<div class=\"grid three\">\n" : "<div class=\"grid\">\n";
  for (const Figure& figure : figures) {
    const std::string id = id_ + '-' + figure.name;
    std::string json = json_text(figure.spec);
    html_ += html_of(figure, id, json);
    json.pop_back();  // the brace that closes it; a notebook has no caption
    specifications_.push_back({id, json + ",\"title\":" + json_text(figure.title) + "}\n"});
  }
  html_ += "</div>\n";
}

std::string Section::text() const {
  return "<section id=\"" + escaped(id_) + "\">\n" + html_ + "</section>\n";
}

void write_page(std::string_view title, std::string_view made_by,
                const std::vector<Section>& sections, ByteSink& bytes) {
  bytes.write(concat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
      R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ')",
      script_hash, "'; style-src '", style_hash, "'; base-uri 'none'; form-action 'none'\">\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n", "<title>",
      escaped(title), "</title>\n<style>", style, "</style>\n</head>\n<body>\n", "<main>\n<h1>",
      escaped(title), "</h1>\n"));
  for (const Section& section : sections) bytes.write(section.text());
  bytes.write(
      concat("</main>\n<noscript><p>The figures need JavaScript, which this page brings with it.",
             "</p></noscript>\n<footer>Made by ", escaped(made_by), "</footer>\n<!--\n", license,
             "-->\n<script>", script, "</script>\n</body>\n</html>\n"));
}

}  // namespace lnorm::page
