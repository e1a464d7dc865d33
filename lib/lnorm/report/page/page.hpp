#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lnorm/io/byte_sink.hpp"
#include "lnorm/report/page/figure.hpp"
#include "lnorm/report/page/html.hpp"

// A page to look at: one HTML file that needs no other, nor a network.
namespace lnorm::page {

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
  void table(const Table& table) { html_ += page::html(table); }
  enum class Layout { two, three };
  // What a click on a row selects is told to figures that have a signal "selected".
  void figures(std::vector<Figure> figures, Layout layout = Layout::two);
  void html(std::string_view text) { html_ += text; }

  const std::string& id() const noexcept { return id_; }
  std::string text() const;
  // Of all figures.
  std::vector<Specification> specifications() const;

 private:
  std::string id_of(const Figure& figure) const { return id_ + '-' + figure.name; }

  std::string id_;
  std::string html_;
  std::vector<Figure> figures_;
};

// title: of the page. made_by: of which command.
void write_page(std::string_view title, std::string_view made_by,
                const std::vector<Section>& sections, ByteSink& bytes);

}  // namespace lnorm::page
