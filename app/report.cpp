#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "lnorm/core/error.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/pipeline/report_data.hpp"
#include "lnorm/report/page/sections.hpp"
#include "observed_rows.hpp"
#include "report_output.hpp"

namespace lnorm::app {

namespace {

// Many sections would make a page that is slow to open.
constexpr std::size_t kFewTensors = 6;
constexpr ReportDataSize kSmall{
    .grid_rows = 40, .grid_columns = 64, .bands = 80, .points = 96, .outliers = 1};

// How much a tensor stands out: with NaN or infinity, then by its largest |x|.
std::vector<double> rank_of(const page::TensorLine& line) {
  return {static_cast<double>(line.summary.input.elements),
          std::isnan(line.largest_x) ? 0 : line.largest_x};
}

// All tensors, by their numbers.
page::Section set_section(const std::map<std::size_t, page::TensorLine>& lines,
                          const OutlierSections& sections) {
  const auto ids = sections.ids(lines.empty() ? 0 : lines.rbegin()->first + 1);
  std::vector<page::TensorLine> listed;
  for (const auto& [number, line] : lines) {
    listed.push_back(line);
    listed.back().section = ids[number];
  }
  return page::set_section(listed);
}

}  // namespace

int report(const Arguments& arguments) {
  const Inputs inputs = open_inputs(arguments);
  const auto* const selection = std::get_if<Selection>(&inputs);
  const bool several = selection == nullptr || selection->several;
  const bool few = selection != nullptr && selection->tensors.size() <= kFewTensors;
  if (arguments.all && !several) throw Error("--all has no effect: there is one tensor");
  PageOutput output("-o", arguments.page);
  const ReportDataSize size = few ? ReportDataSize() : kSmall;
  ObservedRows rows(arguments);
  OutlierSections sections(arguments.all ? static_cast<std::size_t>(-1) : kMaxSections);
  // The numbers of tensors in the order of the page, by their titles; none if they are numbered as they come. A tensor
  // may be named twice.
  std::multimap<std::string, std::size_t> numbers;
  if (selection != nullptr) {
    for (const Selected& tensor : selection->tensors) numbers.emplace(tensor.title, numbers.size());
  }
  std::map<std::size_t, page::TensorLine> lines;  // by their numbers
  const std::vector<std::string>& names = arguments.input.names;
  std::string title = title_of(names.front());
  if (names.size() > 1) title += concat(" and ", names.size() - 1, " more");
  const int status = look_at_each_by(
      inputs, arguments, [&](const TensorInfo& x, const InputName& name) { rows.check(x, name); },
      [&](OpenedTensor& tensor, const InputName& name, TensorWork& work) {
        const TensorInfo x = tensor.source->info();
        std::optional<ReportDataObserver> observer;
        rows.run(std::move(tensor.source), name, work, [&](const Plan& plan) -> RowObserver& {
          return observer.emplace(plan, size, arguments.softmax);
        });
        TensorReportData report_data = observer->report_data(x);
        rows.describe(report_data.stats);
        const std::size_t number = selection != nullptr
                                       ? numbers.extract(numbers.lower_bound(name.title)).mapped()
                                       : lines.size();
        // Each tensor of JSON Lines has its number.
        const std::string& shown = selection != nullptr ? name.title : x.name;
        page::TensorLine line = page::line_of(shown, report_data);
        if (!several) title = report_data.stats.x.name;
        sections.add(number, rank_of(line), [&] {
          return page::tensor_section(several ? concat("tensor-", number) : "tensor",
                                      several ? shown : "", report_data);
        });
        lines.emplace(number, std::move(line));
      });
  if (lines.empty() && status != 0) return status;
  std::vector<page::Section> parts;
  if (several) parts.push_back(set_section(lines, sections));
  for (page::Section& section : sections.take()) parts.push_back(std::move(section));
  output.write(title, "lnorm report", parts);
  return status;
}

}  // namespace lnorm::app
