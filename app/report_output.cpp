#include "report_output.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/io/open_tensor.hpp"
#include "outputs.hpp"
#include "terminal.hpp"

namespace lnorm::app {

void check_page_extension(const std::string& option, const std::string& path) {
  const std::string found = lower_case(std::filesystem::path(path).extension().string());
  if (found.size() <= 1 || found == ".html" || found == ".htm") return;
  throw Error(concat(option, ' ', printable(path), ": a page is HTML, found ", printable(found),
                     ", expected .html"));
}

std::string title_of(const std::string& word) {
  return is_standard_input(word) ? "standard input" + word.substr(1) : word;
}

PageOutput::PageOutput(const std::string& option, const PageArguments& arguments) {
  open_output(option, arguments.path, [&] { page_.emplace(arguments.path); });
  if (page_->is_terminal()) {
    throw Error("a page is not written to a terminal",
                concat(option, " report.html writes it there"));
  }
  if (arguments.path != "-") page_->set_name(concat(option, ' ', arguments.path));
  if (!arguments.specifications) return;
  const std::string& folder = *arguments.specifications;
  open_output("--spec", folder, [&] { specifications_.emplace(folder); });
  specifications_->set_name("--spec " + folder);
}

void PageOutput::write(std::string_view title, std::string_view command,
                       const std::vector<page::Section>& sections) {
  page::write_page(title, concat(command, ", lnorm " LNORM_VERSION), sections, *page_);
  page_->finish();
  if (specifications_) {
    for (const page::Section& section : sections) {
      for (const page::Specification& specification : section.specifications()) {
        specifications_->begin(specification.name, ".vg.json").write(specification.json);
        specifications_->keep();
      }
    }
    specifications_->finish();
    specifications_->commit();
  }
  page_->commit();
}

void OutlierSections::add(std::size_t number, std::vector<double> rank,
                          const std::function<page::Section()>& make) {
  kept_.push_back({number, std::move(rank)});
  const auto least = std::ranges::min_element(kept_, [](const Kept& a, const Kept& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.number > b.number;
  });
  const bool is_kept = kept_.size() <= most_ || least->number != number;
  if (is_kept) kept_.back().section = make();
  if (kept_.size() > most_) kept_.erase(least);
}

std::vector<std::string> OutlierSections::ids(std::size_t count) const {
  std::vector<std::string> result(count);
  for (const Kept& kept : kept_) result[kept.number] = kept.section->id();
  return result;
}

std::vector<page::Section> OutlierSections::take() {
  std::sort(kept_.begin(), kept_.end(),
            [](const Kept& a, const Kept& b) { return a.number < b.number; });
  std::vector<page::Section> result;
  for (Kept& kept : kept_) result.push_back(*std::move(kept.section));
  kept_.clear();
  return result;
}

void save_report(const std::string& option, const std::optional<std::string>& path,
                 const std::function<void(ByteSink& out)>& write) {
  if (!path) return;
  std::optional<ByteSink> out;
  open_output(option, *path, [&] { out.emplace(*path); });
  if (*path != "-") out->set_name(concat(option, ' ', *path));
  write(*out);
  out->finish();
  out->commit();
}

void print_report(const Arguments& arguments, const std::function<void(ByteSink& out)>& write) {
  if (arguments.quiet) return;
  ByteSink out("-");
  out.outlive_reader();  // the exit status is still to be told
  write(out);
  out.finish();
  out.commit();
}

Style report_style(const Arguments& arguments) {
  Style style = output_style(arguments.color, Style::kAnyWidth);
  style.width = arguments.linewidth.value_or(style.width);
  return style;
}

}  // namespace lnorm::app
