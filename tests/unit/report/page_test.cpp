#include "lnorm/report/page/page.hpp"

#include <algorithm>

#include "lnorm/report/page/assets.hpp"
#include "lnorm/report/page/figure.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace {

using lnorm::page::Figure;
using lnorm::page::Section;

Figure figure_of(const std::string& text) {
  lnorm::Json spec = lnorm::page::empty_spec(100, text, {{"x", "x"}});
  spec["data"].push_back({{"name", "table"}, {"values", {{{"x", text}}}}});
  return {"figure", text, text, spec};
}

}  // namespace

TEST_CASE("text from outside stays text in HTML", "[page]") {
  CHECK(lnorm::escaped("<a href=\"x\">'&'</a>") ==
        "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  CHECK(lnorm::escaped("a\nb\x1b\xff") == "a\\nb\\x1b\\xff");
  const std::string attack = "</script><!--<img src=x onerror=alert(1)>";
  Section section("s", attack);
  section.paragraph(attack);
  section.facts({{attack, attack}});
  section.table({attack, {{attack}, {attack}}, {{{attack}, {attack, attack}}}, true});
  section.figures({figure_of(attack)});
  const std::string text = section.text();
  CHECK(text.find("<img") == std::string::npos);
  CHECK(text.find("<!--") == std::string::npos);
  // One script is there, the figure's specification, and it ends once.
  const std::size_t script = text.find("<script type=\"application/json\">");
  REQUIRE(script != std::string::npos);
  CHECK(text.find("<script", script + 1) == std::string::npos);
  const std::size_t begin = text.find('>', script) + 1;
  const auto json = lnorm::Json::parse(text.substr(begin, text.find("</script>", begin) - begin));
  CHECK(json["description"] == attack);
}

TEST_CASE("a specification by itself has the figure's title", "[page]") {
  Section section("s", "");
  section.figures({figure_of("what is seen")});
  REQUIRE(section.specifications().size() == 1);
  CHECK(section.specifications()[0].name == "s-figure");
  CHECK(lnorm::Json::parse(section.specifications()[0].json)["title"] == "what is seen");
}

TEST_CASE("our own script is short, and nothing ends the page's script early", "[page]") {
  const std::string ours = support::read_file(LNORM_SOURCE_DIR "/lib/lnorm/report/page/page.js");
  CHECK(std::count(ours.begin(), ours.end(), '\n') < 100);
  CHECK(lnorm::page::script.ends_with(ours));
  CHECK(lnorm::page::script.find("</script") == std::string_view::npos);
  CHECK(lnorm::page::script.find("<!--") == std::string_view::npos);
}
