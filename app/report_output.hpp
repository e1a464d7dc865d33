#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/folder_sink.hpp"
#include "lnorm/report/page/page.hpp"
#include "lnorm/report/reports.hpp"

namespace lnorm::app {

// Throws Error for a file that would not be taken for HTML. option: that names it.
void check_page_extension(const std::string& option, const std::string& path);

// What a word of the command line names, as a title has it.
std::string title_of(const std::string& word);

// Where a page goes, and its specifications if they are asked for. Both appear whole or not at all.
class PageOutput {
 public:
  // option: that names the path. Throws Error if a place cannot be written, or is a terminal.
  PageOutput(const std::string& option, const PageArguments& arguments);

  // title: of the page. command: that made it.
  void write(std::string_view title, std::string_view command,
             const std::vector<page::Section>& sections);

 private:
  std::optional<ByteSink> page_;
  std::optional<FolderSink> specifications_;
};

// The sections of a page's tensors: of many those that stand out most.
class OutlierSections {
 public:
  explicit OutlierSections(std::size_t most) : most_(most) {}

  // number: of the tensor, in the order of the page. rank: how much it stands out, by its first number, of equals by the
  // next one. make: the section, if it is one of those so far.
  void add(std::size_t number, std::vector<double> rank,
           const std::function<page::Section()>& make);

  // The ids of the sections of tensors 0 to count; empty for those that have none.
  std::vector<std::string> ids(std::size_t count) const;

  // They have the order of the page.
  std::vector<page::Section> take();

 private:
  struct Kept {
    std::size_t number;
    std::vector<double> rank;
    std::optional<page::Section> section = {};
  };
  std::size_t most_;
  std::vector<Kept> kept_;
};

// How many have a section unless all are asked for.
inline constexpr std::size_t kMaxSections = 50;

// Writes a report into a file, if it is named. option: which names it, for errors.
void save_report(const std::string& option, const std::optional<std::string>& path,
                 const std::function<void(ByteSink& out)>& write);

// Writes it where --save-json and --save-junit say.
template <class Data>
void save_reports(const Arguments& arguments, const Data& data) {
  save_report("--save-json", arguments.save_json, [&](ByteSink& out) { write_json(data, out); });
  save_report("--save-junit", arguments.save_junit, [&](ByteSink& out) { write_junit(data, out); });
}

// Writes it on standard output, unless --quiet is given.
void print_report(const Arguments& arguments, const std::function<void(ByteSink& out)>& write);

// How its text looks.
Style report_style(const Arguments& arguments);

}  // namespace lnorm::app
