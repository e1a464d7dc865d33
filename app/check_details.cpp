#include "check_details.hpp"

#include <optional>
#include <utility>

#include "compare_criteria.hpp"
#include "lnorm/core/text.hpp"
#include "lnorm/layout/spooled_tensor.hpp"
#include "lnorm/report/page/sections.hpp"

namespace lnorm::app {

bool wants_details(const Arguments& arguments) {
  return arguments.worst || arguments.histogram || arguments.rows_out ||
         !arguments.page.path.empty();
}

Comparison compare_with_exact(const Arguments& arguments, TensorSource& x, TensorSource& actual,
                              const Plan& plan, const Affine& affine,
                              const std::shared_ptr<const Mask>& mask, const RunOptions& options) {
  TensorInfo result = plan.result();
  result.name = "the exact result";
  TensorSpool spool(result);
  LentSource source(x);
  const Backend& backend = find_backend(arguments.normalization.kernel);
  run(
      source, plan,
      [&](const RowsIn& rows, const RowsOut& y, const MeanAndRstd& statistics) {
        backend.layer_norm(rows, y, affine, plan.formula, statistics);
      },
      {}, &spool, options);
  ListLimits limits{0, arguments.worst.value_or(5)};
  limits.rows = arguments.rows_out.has_value();
  if (!arguments.page.path.empty()) limits.map.emplace();
  const auto exact = spool.source();
  std::optional<Axes> row_axes;
  if (arguments.axes) row_axes = plan.axes;
  return compare(actual, *exact, criteria_of(arguments, nullptr, plan.out, plan.out), limits,
                 options, row_axes, mask);
}

void CheckPage::add(const std::string& title, Check& check) {
  const std::string id = concat("tensor-", number_);
  const std::vector<double> rank{static_cast<double>(check.verdict), check.judged.tree.ratio};
  verdicts_.add(number_, rank, page::check_section(id, title, check));
  if (check.details) {
    errors_.add(number_, rank, page::comparison_section(id + "-errors", "", *check.details));
    check.details->error_map.reset();
  }
  ++number_;
}

std::vector<page::Section> CheckPage::take() {
  const std::vector<std::string> with_errors = errors_.ids(number_);
  const std::vector<std::string> with_verdict = verdicts_.ids(number_);
  std::vector<page::Section> verdicts = verdicts_.take();
  std::vector<page::Section> errors = errors_.take();
  std::vector<page::Section> all;
  auto verdict = verdicts.begin();
  auto error = errors.begin();
  for (std::size_t i = 0; i < number_; ++i) {
    if (!with_verdict[i].empty()) all.push_back(std::move(*verdict++));
    if (!with_errors[i].empty()) all.push_back(std::move(*error++));
  }
  return all;
}

}  // namespace lnorm::app
