#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lnorm/diagnosis/check.hpp"
#include "lnorm/measure/report_data.hpp"
#include "lnorm/measure/set_comparison.hpp"
#include "lnorm/report/page/page.hpp"

// All sections of pages.
namespace lnorm::page {

// All that there is to see of one tensor. title: empty if the page has no other.
Section tensor_section(std::string id, std::string_view title, const TensorReportData& report_data);

// A line of what tensors of a set have in common.
struct TensorLine {
  std::string name;
  std::string dtype;
  std::string shape;
  StatsSummary summary;
  double largest_x = 0;  // |x| of the finite elements; NaN if there are none
  double largest_y = 0;
  FeatureSummary features = {};
  std::string section = {};  // its id; empty if there is none
};
TensorLine line_of(std::string name, const TensorReportData& report_data);

// All tensors of a set along an axis, and a list of them.
Section set_section(const std::vector<TensorLine>& lines);

// The verdict on a kernel's output, what explains it, and where the errors are; then the details, if the check has any.
Section check_section(std::string id, std::string_view title, const Check& check);

// How a comparison came out. title: empty if the page has no other.
Section comparison_section(std::string id, std::string_view title, const Comparison& comparison);

// All pairs of a set, and names that one side alone has. sections[i]: the id of the section of pair i; empty if it has
// none.
Section set_comparison_section(const SetComparison& set, const std::vector<std::string>& sections);

}  // namespace lnorm::page
