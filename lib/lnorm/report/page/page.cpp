#include "lnorm/report/page/page.hpp"

#include <algorithm>

#include "lnorm/core/text.hpp"
#include "lnorm/report/json_value.hpp"
#include "lnorm/report/page/assets.hpp"

namespace lnorm::page {

namespace {

// JSON that a script element may hold: nothing in it ends the element.
std::string script_text(const Json& json) {
  const std::string text = json_text(json);
  std::string result;
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('<', begin)) != text.npos; begin = end + 1) {
    result.append(text, begin, end - begin).append("\\u003c");
  }
  return result.append(text, begin);
}

std::string html_of(const Figure& figure, const std::string& id) {
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
                script_text(figure.spec), "</script></figure>\n");
}

}  // namespace

Section::Section(std::string id, std::string_view title) : id_(std::move(id)) {
  if (!title.empty()) html_ = "<h2>" + escaped(title) + "</h2>\n";
}

void Section::heading(std::string_view title) { html_ += "<h3>" + escaped(title) + "</h3>\n"; }

void Section::paragraph(std::string_view text, std::string_view kind) {
  html_ += kind.empty() ? "<p>" : concat("<p class=\"", kind, "\">");
  html_ += escaped(text) + "</p>\n";
}

void Section::figures(std::vector<Figure> figures, Layout layout) {
  html_ += layout == Layout::three ? "<div class=\"grid three\">\n" : "<div class=\"grid\">\n";
  for (Figure& figure : figures) {
    html_ += html_of(figure, id_of(figure));
    figures_.push_back(std::move(figure));
  }
  html_ += "</div>\n";
}

std::vector<Specification> Section::specifications() const {
  std::vector<Specification> result;
  for (const Figure& figure : figures_) {
    Json spec = figure.spec;
    spec["title"] = figure.title;  // a notebook has no caption
    result.push_back({id_of(figure), json_text(spec) + '\n'});
  }
  return result;
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
