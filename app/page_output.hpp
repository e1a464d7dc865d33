#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "lnorm/io/byte_sink.hpp"
#include "lnorm/io/folder_sink.hpp"
#include "lnorm/report/page/page.hpp"

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

}  // namespace lnorm::app
